#include <immintrin.h>
#include <stdint.h>

static inline uint64_t plus_of_block(const float *x) {
    uint64_t plus = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) plus |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + 8 * k), _mm256_setzero_ps(), _CMP_GE_OQ)) << (8 * k);
    return plus;
}

// if_plus in the lanes whose bit is 1, if_minus in the others.
static inline __m256 unpacked(unsigned bits, __m256 if_plus, __m256 if_minus) {
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), mine = _mm256_and_si256(_mm256_set1_epi32((int)bits), bit);
    return _mm256_blendv_ps(if_minus, if_plus, _mm256_castsi256_ps(_mm256_cmpeq_epi32(mine, bit)));
}

static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
    const __m256 plus8 = _mm256_set1_ps(if_plus), minus8 = _mm256_set1_ps(if_minus);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) _mm256_storeu_ps(m + 8 * k, unpacked((unsigned)(plus >> (8 * k) & 255), plus8, minus8));
}

static inline void add_to_block(float *x, const uint8_t *const *wires, const float *scales, size_t ranks, size_t byte) {
    __m256 sum[8];
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) sum[k] = _mm256_loadu_ps(x + 8 * k);
    for (size_t r = 0; r < ranks; r++) {
        const __m256 scale = _mm256_set1_ps(scales[r]), minus = _mm256_set1_ps(-scales[r]);
#pragma GCC unroll 8
        for (size_t k = 0; k < 8; k++) sum[k] = _mm256_add_ps(sum[k], unpacked(wires[r][byte + k], scale, minus));
    }
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) _mm256_storeu_ps(x + 8 * k, sum[k]);
}

#include "moments.h"

const terse_moments terse_moments_avx2 = {"avx2", accumulate, squares, accumulate_and_squares, carry, carry_mean, apply, refresh};
