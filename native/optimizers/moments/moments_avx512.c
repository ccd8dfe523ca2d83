#include <immintrin.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t plus_of_block(const float *x) {
    uint64_t plus = 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) plus |= (uint64_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(x + 16 * k), _mm512_setzero_ps(), _CMP_GE_OQ) << (16 * k);
    return plus;
}

static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) _mm512_storeu_ps(m + 16 * k, _mm512_mask_blend_ps((__mmask16)(plus >> 16 * k), _mm512_set1_ps(if_minus), _mm512_set1_ps(if_plus)));
}

static inline void add_to_block(float *x, const uint8_t *const *wires, const float *scales, size_t ranks, size_t byte) {
    __m512 sum[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) sum[k] = _mm512_loadu_ps(x + 16 * k);
    for (size_t r = 0; r < ranks; r++) {
        uint64_t plus;
        memcpy(&plus, wires[r] + byte, sizeof plus);
        const __m512 scale = _mm512_set1_ps(scales[r]), minus = _mm512_set1_ps(-scales[r]);
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) sum[k] = _mm512_add_ps(sum[k], _mm512_mask_blend_ps((__mmask16)(plus >> 16 * k), minus, scale));
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) _mm512_storeu_ps(x + 16 * k, sum[k]);
}

#include "moments.h"

const terse_moments terse_moments_avx512 = {"avx512", accumulate, squares, accumulate_and_squares, carry, carry_mean, apply, refresh};
