#include <immintrin.h>
#include <stdint.h>

static inline uint64_t plus_of_block(const float *x) {
    uint64_t plus = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) plus |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + 8 * k), _mm256_setzero_ps(), _CMP_GE_OQ)) << (8 * k);
    return plus;
}

static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256 plus8 = _mm256_set1_ps(if_plus), minus8 = _mm256_set1_ps(if_minus);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256i mine = _mm256_and_si256(_mm256_set1_epi32((int)(plus >> (8 * k) & 255)), bit);
        _mm256_storeu_ps(m + 8 * k, _mm256_blendv_ps(minus8, plus8, _mm256_castsi256_ps(_mm256_cmpeq_epi32(mine, bit))));
    }
}

#include "moments.h"

const terse_moments terse_moments_avx2 = {"avx2", accumulate, squares, accumulate_and_squares, carry, carry_mean, apply, refresh};
