// Lion's kernels in the words of terse/vector.h, which a file includes before this one. Rounds of 64 elements are
// checked four vectors at a time before any of these is stored. The scalar kernel finds the element that is not finite,
// and does the tail.
#include "lion.h"

enum { CHECKED = 4 };  // vectors: their c and m stay in registers

typedef struct momentum {
    uint8_t *wire;
    float *theta, *m;  // theta: where c goes, in a mix
    const float *g;
    size_t first_bad;  // where the first vectors with a NaN or an infinity begin; n if there are none
    vec m_in_c, g_in_c, m_in_m, g_in_m, keep, plus, minus, gradient;
} momentum;

static inline momentum momentum_of(uint8_t *wire, float *theta, float *m, const float *g, size_t n,
                                   const terse_lion_options *options) {
    const lion_weights w = lion_weights_of(options);
    return (momentum){wire,
                      theta,
                      m,
                      g,
                      n,
                      SPLAT(w.m_in_c),
                      SPLAT(w.g_in_c),
                      SPLAT(w.m_in_m),
                      SPLAT(w.g_in_m),
                      SPLAT(w.keep),
                      SPLAT(w.scale),
                      SPLAT(-w.scale),
                      SPLAT(w.gradient)};
}

// Computes c and the next m. Returns 0 if a c is not finite: x - x is +0 for every finite x, NaN otherwise.
static inline __attribute__((always_inline)) int look(momentum *s, size_t i, vec c[CHECKED], vec next[CHECKED]) {
    ints bad = {0};
#pragma GCC unroll 4
    for (size_t k = 0; k < CHECKED; k++) {
        const vec m = LOAD(s->m + i + LANES * k), g = LOAD(s->g + i + LANES * k) * s->gradient;
        c[k] = s->m_in_c * m + s->g_in_c * g;
        next[k] = s->m_in_m * m + s->g_in_m * g;
        bad |= (ints)(c[k] - c[k]);
    }
    if (!ANY(bad)) return 1;
    if (i < s->first_bad) s->first_bad = i;
    return 0;
}

// Also what is written and not read, which no processor fetches by itself.
static inline __attribute__((always_inline)) void fetch(const momentum *s, size_t i, const int theta,
                                                        const int fetches) {
    terse_fetch(s->m + i, TERSE_NEAR, fetches);
    terse_fetch(s->g + i, TERSE_NEAR, fetches);
    if (theta) terse_fetch(s->theta + i, TERSE_NEAR, fetches);
}

static inline __attribute__((always_inline)) mask sign_of(vec c, const int zero_is_plus) {
    const vec zero = SPLAT(0.0f);
    return zero_is_plus ? NOT_BELOW(c, zero) : ABOVE(c, zero);
}

static inline __attribute__((always_inline)) void vote_round(momentum *s, size_t i, const int zero_is_plus,
                                                             const int fetches) {
    fetch(s, i, 0, fetches);
    mask plus[VECTORS];
#pragma GCC unroll 4
    for (size_t from = 0; from < VECTORS; from += CHECKED) {
        vec c[CHECKED], next[CHECKED];
        if (!look(s, i + LANES * from, c, next)) return;
#pragma GCC unroll 4
        for (size_t k = 0; k < CHECKED; k++) {
            plus[from + k] = sign_of(c[k], zero_is_plus);
            STORE(s->m + i + LANES * (from + k), next[k]);
        }
    }
    terse_store_word(s->wire + i / 8, WORD(plus));
}

TERSE_ROUND_FUNCTION vote_zero_plus(void *s, size_t i, int fetches) { vote_round(s, i, 1, fetches); }
TERSE_ROUND_FUNCTION vote_zero_minus(void *s, size_t i, int fetches) { vote_round(s, i, 0, fetches); }

static size_t vote(uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options) {
    momentum s = momentum_of(wire, NULL, m, g, n, options);
    size_t done = options->zero == TERSE_LION_PLUS ? terse_walk_fetching(n, vote_zero_plus, &s)
                                                   : terse_walk_fetching(n, vote_zero_minus, &s);
    if (s.first_bad < n) done = s.first_bad;
    return done + terse_lion_scalar.vote(wire + done / 8, m + done, g + done, n - done, options);
}

TERSE_ROUND_FUNCTION mix_round(void *context, size_t i, int fetches) {
    momentum *s = context;
    fetch(s, i, 1, fetches);
#pragma GCC unroll 4
    for (size_t from = i; from < i + TERSE_ROUND; from += LANES * CHECKED) {
        vec c[CHECKED], next[CHECKED];
        look(s, from, c, next);
#pragma GCC unroll 4
        for (size_t k = 0; k < CHECKED; k++) {
            STORE(s->theta + from + LANES * k, c[k]);
            STORE(s->m + from + LANES * k, next[k]);
        }
    }
}

static void mix(float *c, float *m, const float *g, size_t n, const terse_lion_options *options) {
    momentum s = momentum_of(NULL, c, m, g, n, options);
    const size_t done = terse_walk_fetching(n, mix_round, &s);
    terse_lion_scalar.mix(c + done, m + done, g + done, n - done, options);
}

static inline __attribute__((always_inline)) void step_round(momentum *s, size_t i, const terse_lion_zero zero,
                                                             const int fetches) {
    fetch(s, i, 1, fetches);
#pragma GCC unroll 4
    for (size_t from = i; from < i + TERSE_ROUND; from += LANES * CHECKED) {
        vec c[CHECKED], next[CHECKED];
        if (!look(s, from, c, next)) return;
#pragma GCC unroll 4
        for (size_t k = 0; k < CHECKED; k++) {
            float *theta = s->theta + from + LANES * k;
            const vec kept = LOAD(theta) * s->keep,
                      moved = kept + CHOOSE(sign_of(c[k], zero == TERSE_LION_PLUS), s->plus, s->minus);
            STORE(theta, zero == TERSE_LION_HOLD ? CHOOSE(EQUAL(c[k], SPLAT(0.0f)), kept, moved) : moved);
            STORE(s->m + from + LANES * k, next[k]);
        }
    }
}

TERSE_ROUND_FUNCTION step_zero_plus(void *s, size_t i, int fetches) { step_round(s, i, TERSE_LION_PLUS, fetches); }
TERSE_ROUND_FUNCTION step_zero_minus(void *s, size_t i, int fetches) { step_round(s, i, TERSE_LION_MINUS, fetches); }
TERSE_ROUND_FUNCTION step_zero_hold(void *s, size_t i, int fetches) { step_round(s, i, TERSE_LION_HOLD, fetches); }

static size_t step(float *theta, float *m, const float *g, size_t n, const terse_lion_options *options) {
    momentum s = momentum_of(NULL, theta, m, g, n, options);
    size_t done = options->zero == TERSE_LION_PLUS    ? terse_walk_fetching(n, step_zero_plus, &s)
                  : options->zero == TERSE_LION_MINUS ? terse_walk_fetching(n, step_zero_minus, &s)
                                                      : terse_walk_fetching(n, step_zero_hold, &s);
    if (s.first_bad < n) done = s.first_bad;
    return done + terse_lion_scalar.step(theta + done, m + done, g + done, n - done, options);
}

typedef struct change {
    float *theta;
    const uint8_t *const *wires;  // signs; or plus and nonzero; or the planes of a tally
    int planes;
    vec keep, plus, minus;  // plus = scale, minus = -scale
    vec all;                // of a tally: ranks
} change;

static inline change change_of(float *theta, const uint8_t *const *wires, float keep, float scale) {
    return (change){.theta = theta, .wires = wires, .keep = SPLAT(keep), .plus = SPLAT(scale), .minus = SPLAT(-scale)};
}

TERSE_ROUND_FUNCTION signs_round(void *context, size_t i, int fetches) {
    const change *c = context;
    terse_fetch(c->theta + i, TERSE_WALK_GROUP, fetches);
    const uint64_t plus = terse_load_word(c->wires[0] + i / 8);
    EACH_VECTOR {
        float *theta = c->theta + i + LANES * k;
        STORE(theta, LOAD(theta) * c->keep + CHOOSE(LANES_OF(plus, k), c->plus, c->minus));
    }
}

static void apply_signs(float *theta, const uint8_t *wire, size_t n, float keep, float scale) {
    change c = change_of(theta, &wire, keep, scale);
    const size_t done = terse_walk_fetching(n, signs_round, &c);
    terse_lion_scalar.apply_signs(theta + done, wire + done / 8, n - done, keep, scale);
}

TERSE_ROUND_FUNCTION ternary_round(void *context, size_t i, int fetches) {
    const change *c = context;
    terse_fetch(c->theta + i, TERSE_WALK_GROUP, fetches);
    const uint64_t plus = terse_load_word(c->wires[0] + i / 8), nonzero = terse_load_word(c->wires[1] + i / 8);
    EACH_VECTOR {
        float *theta = c->theta + i + LANES * k;
        const vec kept = LOAD(theta) * c->keep;
        STORE(theta, ADD_WHERE(LANES_OF(nonzero, k), kept, CHOOSE(LANES_OF(plus, k), c->plus, c->minus)));
    }
}

static void apply_ternary(float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep,
                          float scale) {
    const uint8_t *const wires[] = {plus, nonzero};
    change c = change_of(theta, wires, keep, scale);
    const size_t done = terse_walk_fetching(n, ternary_round, &c);
    terse_lion_scalar.apply_ternary(theta + done, plus + done / 8, nonzero + done / 8, n - done, keep, scale);
}

TERSE_ROUND_FUNCTION tally_round(void *context, size_t i, int fetches) {
    const change *c = context;
    terse_fetch(c->theta + i, TERSE_WALK_GROUP, fetches);
    vec balance[VECTORS];  // 2 c - ranks: small whole numbers, exact in fp32
    EACH_VECTOR balance[k] = -c->all;
    for (int plane = 0; plane < c->planes; plane++) {
        const uint64_t word = terse_load_word(c->wires[plane] + i / 8);
        const vec twice = SPLAT((float)(2 << plane));
        EACH_VECTOR balance[k] = ADD_WHERE(LANES_OF(word, k), balance[k], twice);
    }
    EACH_VECTOR {
        float *theta = c->theta + i + LANES * k;
        STORE(theta, LOAD(theta) * c->keep + balance[k] / c->all * c->plus);
    }
}

static terse_optimizer_status apply_tally(float *theta, const uint8_t *const *planes, size_t ranks, size_t n,
                                          float keep, float scale) {
    if (ranks < 1 || ranks > TERSE_TALLY_MAX_RANKS) return TERSE_OPTIMIZER_BAD_RANKS;
    change c = change_of(theta, planes, keep, scale);
    c.planes = tally_planes(ranks), c.all = SPLAT((float)ranks);
    const size_t done = terse_walk_fetching(n, tally_round, &c);
    const uint8_t *rest[TALLY_PLANES];
    for (int k = 0; k < c.planes; k++) rest[k] = planes[k] + done / 8;
    return terse_lion_scalar.apply_tally(theta + done, rest, ranks, n - done, keep, scale);
}

const terse_lion TERSE_NAMED(terse_lion) = {TERSE_IMPLEMENTATION, vote,          mix,        step,
                                            apply_signs,          apply_ternary, apply_tally};
