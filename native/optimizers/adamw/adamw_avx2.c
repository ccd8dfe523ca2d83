#include <immintrin.h>

#include "adamw.h"

// Two registers per round, checked before anything is stored. The scalar kernel finds the bad element of a round and does the tail.
static size_t step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options) {
    const adamw_weights w = adamw_weights_of(options);
    const __m256 m_in_m = _mm256_set1_ps(w.m_in_m), g_in_m = _mm256_set1_ps(w.g_in_m), v_in_v = _mm256_set1_ps(w.v_in_v), g_in_v = _mm256_set1_ps(w.g_in_v);
    const __m256 keep = _mm256_set1_ps(w.keep), rate = _mm256_set1_ps(w.rate), epsilon = _mm256_set1_ps(w.epsilon), gradient = _mm256_set1_ps(w.gradient);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 bad = _mm256_setzero_ps(), next_m[2], next_v[2];
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const __m256 gk = _mm256_mul_ps(_mm256_loadu_ps(g + i + 8 * k), gradient);
            next_m[k] = _mm256_add_ps(_mm256_mul_ps(m_in_m, _mm256_loadu_ps(m + i + 8 * k)), _mm256_mul_ps(g_in_m, gk));
            next_v[k] = _mm256_add_ps(_mm256_mul_ps(v_in_v, _mm256_loadu_ps(v + i + 8 * k)), _mm256_mul_ps(_mm256_mul_ps(g_in_v, gk), gk));
            bad = _mm256_or_ps(bad, _mm256_or_ps(_mm256_sub_ps(next_m[k], next_m[k]), _mm256_sub_ps(next_v[k], next_v[k])));
        }
        if (!_mm256_testz_si256(_mm256_castps_si256(bad), _mm256_castps_si256(bad))) break;
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const __m256 move = _mm256_div_ps(_mm256_mul_ps(rate, next_m[k]), _mm256_add_ps(_mm256_sqrt_ps(next_v[k]), epsilon));
            const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(theta + i + 8 * k), keep);
            _mm256_storeu_ps(theta + i + 8 * k, _mm256_sub_ps(kept, move));
            _mm256_storeu_ps(m + i + 8 * k, next_m[k]);
            _mm256_storeu_ps(v + i + 8 * k, next_v[k]);
        }
    }
    return i + terse_adamw_scalar.step(theta + i, m + i, v + i, g + i, n - i, options);
}

const terse_adamw terse_adamw_avx2 = {"avx2", step};
