#include <immintrin.h>

#include "adamw.h"

// As adamw_avx2.c, with whole cache lines and four of them per round: fewer instructions between two cache misses.
typedef struct update {
    float *theta, *m, *v;
    const float *g;
    size_t first_bad;  // the first round with a NaN or an infinity; n if there is none
    __m512 m_in_m, g_in_m, v_in_v, g_in_v, keep, rate, epsilon, gradient;
} update;

TERSE_ROUND_FUNCTION round_of_64(void *context, size_t i, int fetches) {
    update *u = context;
    if (fetches) {
        terse_prefetch(u->theta + i + TERSE_NEAR);
        terse_prefetch(u->m + i + TERSE_NEAR);
        terse_prefetch(u->v + i + TERSE_NEAR);
        terse_prefetch(u->g + i + TERSE_NEAR);
    }
    __m512i bad = _mm512_setzero_si512();
    __m512 next_m[4], next_v[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512 g = _mm512_mul_ps(_mm512_loadu_ps(u->g + i + 16 * k), u->gradient);
        next_m[k] = _mm512_add_ps(_mm512_mul_ps(u->m_in_m, _mm512_loadu_ps(u->m + i + 16 * k)), _mm512_mul_ps(u->g_in_m, g));
        next_v[k] = _mm512_add_ps(_mm512_mul_ps(u->v_in_v, _mm512_loadu_ps(u->v + i + 16 * k)), _mm512_mul_ps(_mm512_mul_ps(u->g_in_v, g), g));
        const __m512i bad_m = _mm512_castps_si512(_mm512_sub_ps(next_m[k], next_m[k])), bad_v = _mm512_castps_si512(_mm512_sub_ps(next_v[k], next_v[k]));
        bad = _mm512_or_si512(bad, _mm512_or_si512(bad_m, bad_v));
    }
    if (_mm512_test_epi32_mask(bad, bad)) {
        if (i < u->first_bad) u->first_bad = i;
        return;
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512 move = _mm512_div_ps(_mm512_mul_ps(u->rate, next_m[k]), _mm512_add_ps(_mm512_sqrt_ps(next_v[k]), u->epsilon));
        const __m512 kept = _mm512_mul_ps(_mm512_loadu_ps(u->theta + i + 16 * k), u->keep);
        _mm512_storeu_ps(u->theta + i + 16 * k, _mm512_sub_ps(kept, move));
        _mm512_storeu_ps(u->m + i + 16 * k, next_m[k]);
        _mm512_storeu_ps(u->v + i + 16 * k, next_v[k]);
    }
}

static size_t step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options) {
    const adamw_weights w = adamw_weights_of(options);
    update u = {theta, m, v, g, n, _mm512_set1_ps(w.m_in_m), _mm512_set1_ps(w.g_in_m), _mm512_set1_ps(w.v_in_v), _mm512_set1_ps(w.g_in_v),
                _mm512_set1_ps(w.keep), _mm512_set1_ps(w.rate), _mm512_set1_ps(w.epsilon), _mm512_set1_ps(w.gradient)};
    size_t done = terse_walk_fetching(n, round_of_64, &u);
    if (u.first_bad < n) done = u.first_bad;  // the scalar kernel finds the element
    return done + terse_adamw_scalar.step(theta + done, m + done, v + done, g + done, n - done, options);
}

const terse_adamw terse_adamw_avx512 = {"avx512", step};
