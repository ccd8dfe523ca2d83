#include <immintrin.h>

#include "adamw.h"

// As adamw_avx2.c, with whole cache lines and four of them per round: fewer instructions between two cache misses.
static size_t step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options) {
    const adamw_weights w = adamw_weights_of(options);
    const __m512 m_in_m = _mm512_set1_ps(w.m_in_m), g_in_m = _mm512_set1_ps(w.g_in_m), v_in_v = _mm512_set1_ps(w.v_in_v), g_in_v = _mm512_set1_ps(w.g_in_v);
    const __m512 keep = _mm512_set1_ps(w.keep), rate = _mm512_set1_ps(w.rate), epsilon = _mm512_set1_ps(w.epsilon), gradient = _mm512_set1_ps(w.gradient);
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        terse_prefetch(theta + i + TERSE_NEAR);
        terse_prefetch(m + i + TERSE_NEAR);
        terse_prefetch(v + i + TERSE_NEAR);
        terse_prefetch(g + i + TERSE_NEAR);
        __m512i bad = _mm512_setzero_si512();
        __m512 next_m[4], next_v[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const __m512 gk = _mm512_mul_ps(_mm512_loadu_ps(g + i + 16 * k), gradient);
            next_m[k] = _mm512_add_ps(_mm512_mul_ps(m_in_m, _mm512_loadu_ps(m + i + 16 * k)), _mm512_mul_ps(g_in_m, gk));
            next_v[k] = _mm512_add_ps(_mm512_mul_ps(v_in_v, _mm512_loadu_ps(v + i + 16 * k)), _mm512_mul_ps(_mm512_mul_ps(g_in_v, gk), gk));
            const __m512i bad_m = _mm512_castps_si512(_mm512_sub_ps(next_m[k], next_m[k])), bad_v = _mm512_castps_si512(_mm512_sub_ps(next_v[k], next_v[k]));
            bad = _mm512_or_si512(bad, _mm512_or_si512(bad_m, bad_v));
        }
        if (_mm512_test_epi32_mask(bad, bad)) break;
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const __m512 move = _mm512_div_ps(_mm512_mul_ps(rate, next_m[k]), _mm512_add_ps(_mm512_sqrt_ps(next_v[k]), epsilon));
            const __m512 kept = _mm512_mul_ps(_mm512_loadu_ps(theta + i + 16 * k), keep);
            _mm512_storeu_ps(theta + i + 16 * k, _mm512_sub_ps(kept, move));
            _mm512_storeu_ps(m + i + 16 * k, next_m[k]);
            _mm512_storeu_ps(v + i + 16 * k, next_v[k]);
        }
    }
    return i + terse_adamw_scalar.step(theta + i, m + i, v + i, g + i, n - i, options);
}

const terse_adamw terse_adamw_avx512 = {"avx512", step};
