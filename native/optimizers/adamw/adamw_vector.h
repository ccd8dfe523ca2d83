// AdamW's kernel in the words of terse/vector.h, which a file includes before this one. A few vectors are checked
// before any of them is stored. The scalar kernel finds the element that is not finite, and does the tail.
#include "adamw.h"

enum { CHECKED = LANES < 16 ? 2 : 4 };  // vectors: their m and v stay in registers

typedef struct update {
    float *theta, *m, *v;
    const float *g;
    size_t first_bad;  // where the first vectors with a NaN or an infinity begin; n if there are none
    vec m_in_m, g_in_m, v_in_v, g_in_v, keep, rate, epsilon, gradient;
} update;

static inline __attribute__((always_inline)) int part(update *u, size_t i) {
    ints bad = {0};
    vec next_m[CHECKED], next_v[CHECKED];
#pragma GCC unroll 4
    for (size_t k = 0; k < CHECKED; k++) {
        const vec g = LOAD(u->g + i + LANES * k) * u->gradient;
        next_m[k] = u->m_in_m * LOAD(u->m + i + LANES * k) + u->g_in_m * g;
        next_v[k] = u->v_in_v * LOAD(u->v + i + LANES * k) + u->g_in_v * g * g;
        bad |= (ints)(next_m[k] - next_m[k]) | (ints)(next_v[k] - next_v[k]);
    }
    if (ANY(bad)) {
        if (i < u->first_bad) u->first_bad = i;
        return 0;
    }
#pragma GCC unroll 4
    for (size_t k = 0; k < CHECKED; k++) {
        const vec move = u->rate * next_m[k] / (SQRT(next_v[k]) + u->epsilon);
        STORE(u->theta + i + LANES * k, LOAD(u->theta + i + LANES * k) * u->keep - move);
        STORE(u->m + i + LANES * k, next_m[k]);
        STORE(u->v + i + LANES * k, next_v[k]);
    }
    return 1;
}

TERSE_ROUND_FUNCTION round_of_64(void *context, size_t i, int fetches) {
    update *u = context;
    terse_fetch(u->theta + i, TERSE_NEAR, fetches);
    terse_fetch(u->m + i, TERSE_NEAR, fetches);
    terse_fetch(u->v + i, TERSE_NEAR, fetches);
    terse_fetch(u->g + i, TERSE_NEAR, fetches);
#pragma GCC unroll 4
    for (size_t from = i; from < i + TERSE_ROUND; from += LANES * CHECKED)
        if (!part(u, from)) return;
}

static size_t step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options) {
    const adamw_weights w = adamw_weights_of(options);
    update u = {theta,
                m,
                v,
                g,
                n,
                SPLAT(w.m_in_m),
                SPLAT(w.g_in_m),
                SPLAT(w.v_in_v),
                SPLAT(w.g_in_v),
                SPLAT(w.keep),
                SPLAT(w.rate),
                SPLAT(w.epsilon),
                SPLAT(w.gradient)};
    size_t done = terse_walk_fetching(n, round_of_64, &u);
    if (u.first_bad < n) done = u.first_bad;
    return done + terse_adamw_scalar.step(theta + done, m + done, v + done, g + done, n - done, options);
}

const terse_adamw TERSE_NAMED(terse_adamw) = {TERSE_IMPLEMENTATION, step};
