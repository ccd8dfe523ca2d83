#include <immintrin.h>
#include <string.h>

#include "lion.h"

// Eight elements per register, eight registers per round. The scalar kernel finds the bad element of a round and does the tail.
typedef struct momentum {
    uint8_t *wire;
    float *theta, *m;  // theta: where c goes, in a mix
    const float *g;
    size_t first_bad;  // the first round with a NaN or an infinity; n if there is none
    __m256 m_in_c, g_in_c, m_in_m, g_in_m, keep, minus_scale, sign_bit, gradient;
} momentum;

static inline momentum momentum_of(uint8_t *wire, float *theta, float *m, const float *g, size_t n, const terse_lion_options *options) {
    const lion_weights w = lion_weights_of(options);
    return (momentum){wire, theta, m, g, n, _mm256_set1_ps(w.m_in_c), _mm256_set1_ps(w.g_in_c), _mm256_set1_ps(w.m_in_m), _mm256_set1_ps(w.g_in_m),
                      _mm256_set1_ps(w.keep), _mm256_set1_ps(-w.scale), _mm256_set1_ps(-0.0f), _mm256_set1_ps(w.gradient)};
}

// a x + b y
static inline __m256 sum_of(__m256 a, __m256 x, __m256 b, __m256 y) { return _mm256_add_ps(_mm256_mul_ps(a, x), _mm256_mul_ps(b, y)); }

// Computes c and the next m of 32 elements. Returns 0 if a c is not finite: x - x is +0 for every finite x, NaN otherwise.
static inline __attribute__((always_inline)) int look(momentum *s, size_t i, __m256 *c, __m256 *next) {
    __m256 bad = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m256 m = _mm256_loadu_ps(s->m + i + 8 * k), g = _mm256_mul_ps(_mm256_loadu_ps(s->g + i + 8 * k), s->gradient);
        c[k] = sum_of(s->m_in_c, m, s->g_in_c, g);
        next[k] = sum_of(s->m_in_m, m, s->g_in_m, g);
        bad = _mm256_or_ps(bad, _mm256_sub_ps(c[k], c[k]));
    }
    if (_mm256_testz_si256(_mm256_castps_si256(bad), _mm256_castps_si256(bad))) return 1;
    if (i < s->first_bad) s->first_bad = i;
    return 0;
}

// Also what is written and not read, which no processor fetches by itself.
static inline __attribute__((always_inline)) void fetch(const momentum *s, size_t i, const int theta, const int fetches) {
    if (!fetches) return;
    terse_prefetch(s->m + i + TERSE_NEAR);
    terse_prefetch(s->g + i + TERSE_NEAR);
    if (theta) terse_prefetch(s->theta + i + TERSE_NEAR);
}

static inline __attribute__((always_inline)) void vote_round(momentum *s, size_t i, const int is_plus, const int fetches) {
    fetch(s, i, 0, fetches);
    uint64_t word = 0;
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; half++) {
        __m256 c[4], next[4];
        if (!look(s, i + 32 * half, c, next)) return;
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            word |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_cmp_ps(c[k], _mm256_setzero_ps(), is_plus)) << (32 * half + 8 * k);
            _mm256_storeu_ps(s->m + i + 32 * half + 8 * k, next[k]);
        }
    }
    memcpy(s->wire + i / 8, &word, 8);
}

TERSE_ROUND_FUNCTION vote_zero_plus(void *s, size_t i, int fetches) { vote_round(s, i, _CMP_GE_OQ, fetches); }
TERSE_ROUND_FUNCTION vote_zero_minus(void *s, size_t i, int fetches) { vote_round(s, i, _CMP_GT_OQ, fetches); }

static size_t vote(uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options) {
    momentum s = momentum_of(wire, NULL, m, g, n, options);
    size_t done = options->zero == TERSE_LION_PLUS ? terse_walk_fetching(n, vote_zero_plus, &s) : terse_walk_fetching(n, vote_zero_minus, &s);
    if (s.first_bad < n) done = s.first_bad;
    return done + terse_lion_scalar.vote(wire + done / 8, m + done, g + done, n - done, options);
}

TERSE_ROUND_FUNCTION mix_round(void *context, size_t i, int fetches) {
    momentum *s = context;
    fetch(s, i, 1, fetches);
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; half++) {
        __m256 c[4], next[4];
        look(s, i + 32 * half, c, next);
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            _mm256_storeu_ps(s->theta + i + 32 * half + 8 * k, c[k]);
            _mm256_storeu_ps(s->m + i + 32 * half + 8 * k, next[k]);
        }
    }
}

static void mix(float *c, float *m, const float *g, size_t n, const terse_lion_options *options) {
    momentum s = momentum_of(NULL, c, m, g, n, options);
    const size_t done = terse_walk_fetching(n, mix_round, &s);
    terse_lion_scalar.mix(c + done, m + done, g + done, n - done, options);
}

static inline __attribute__((always_inline)) void step_round(momentum *s, size_t i, const int is_plus, const int hold, const int fetches) {
    fetch(s, i, 1, fetches);
    const __m256 zero = _mm256_setzero_ps();
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; half++) {
        __m256 c[4], next[4];
        if (!look(s, i + 32 * half, c, next)) return;
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            const size_t at = i + 32 * half + 8 * k;
            const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(s->theta + at), s->keep);
            __m256 move = _mm256_xor_ps(s->minus_scale, _mm256_and_ps(_mm256_cmp_ps(c[k], zero, is_plus), s->sign_bit));
            if (hold) move = _mm256_blendv_ps(move, s->sign_bit, _mm256_cmp_ps(c[k], zero, _CMP_EQ_OQ));  // x + -0 = x, for -0 too
            _mm256_storeu_ps(s->theta + at, _mm256_add_ps(kept, move));
            _mm256_storeu_ps(s->m + at, next[k]);
        }
    }
}

TERSE_ROUND_FUNCTION step_zero_plus(void *s, size_t i, int fetches) { step_round(s, i, _CMP_GE_OQ, 0, fetches); }
TERSE_ROUND_FUNCTION step_zero_minus(void *s, size_t i, int fetches) { step_round(s, i, _CMP_GT_OQ, 0, fetches); }
TERSE_ROUND_FUNCTION step_zero_hold(void *s, size_t i, int fetches) { step_round(s, i, _CMP_GT_OQ, 1, fetches); }

static size_t step(float *theta, float *m, const float *g, size_t n, const terse_lion_options *options) {
    momentum s = momentum_of(NULL, theta, m, g, n, options);
    size_t done = options->zero == TERSE_LION_PLUS    ? terse_walk_fetching(n, step_zero_plus, &s)
                  : options->zero == TERSE_LION_MINUS ? terse_walk_fetching(n, step_zero_minus, &s)
                                                      : terse_walk_fetching(n, step_zero_hold, &s);
    if (s.first_bad < n) done = s.first_bad;
    return done + terse_lion_scalar.step(theta + done, m + done, g + done, n - done, options);
}

static inline uint64_t load_word(const uint8_t *wire) {
    uint64_t word;
    memcpy(&word, wire, 8);
    return word;
}

// Bits 8 k .. 8 k + 7 of a word, each in the top bit of its SIMD lane, where a float has its sign.
static inline __m256 spread(uint64_t word, int k) {
    const __m256i to_top = _mm256_sub_epi32(_mm256_set1_epi32(31 - 8 * (k % 4)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_castsi256_ps(_mm256_sllv_epi32(_mm256_set1_epi32((int)(word >> 32 * (k / 4))), to_top));
}

typedef struct change {
    float *theta;
    const uint8_t *const *wires;  // signs; or plus and nonzero; or the planes of a tally
    int planes;
    __m256 keep, scale, minus_scale, sign_bit;
    __m256 all, none;  // of a tally: ranks; 2^planes - 1 - ranks
} change;

static inline change change_of(float *theta, const uint8_t *const *wires, float keep, float scale) {
    return (change){.theta = theta, .wires = wires, .keep = _mm256_set1_ps(keep), .scale = _mm256_set1_ps(scale),
                    .minus_scale = _mm256_set1_ps(-scale), .sign_bit = _mm256_set1_ps(-0.0f)};
}

// x where the bit is 0, -x where it is 1.
static inline __m256 negate(const change *c, __m256 x, __m256 bits) { return _mm256_xor_ps(x, _mm256_and_ps(bits, c->sign_bit)); }

TERSE_ROUND_FUNCTION signs_round(void *context, size_t i, int fetches) {
    const change *c = context;
    if (fetches) terse_prefetch(c->theta + i + TERSE_WALK_GROUP);
    const uint64_t word = load_word(c->wires[0] + i / 8);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        float *theta = c->theta + i + 8 * k;
        const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(theta), c->keep);
        _mm256_storeu_ps(theta, _mm256_add_ps(kept, negate(c, c->minus_scale, spread(word, k))));
    }
}

static void apply_signs(float *theta, const uint8_t *wire, size_t n, float keep, float scale) {
    change c = change_of(theta, &wire, keep, scale);
    const size_t done = terse_walk_fetching(n, signs_round, &c);
    terse_lion_scalar.apply_signs(theta + done, wire + done / 8, n - done, keep, scale);
}

TERSE_ROUND_FUNCTION ternary_round(void *context, size_t i, int fetches) {
    const change *c = context;
    if (fetches) terse_prefetch(c->theta + i + TERSE_WALK_GROUP);
    const uint64_t signs = load_word(c->wires[0] + i / 8), moves = load_word(c->wires[1] + i / 8);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        float *theta = c->theta + i + 8 * k;
        const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(theta), c->keep);
        const __m256 move = _mm256_blendv_ps(c->sign_bit, negate(c, c->minus_scale, spread(signs, k)), spread(moves, k));  // x + -0 = x, for -0 too
        _mm256_storeu_ps(theta, _mm256_add_ps(kept, move));
    }
}

static void apply_ternary(float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep, float scale) {
    const uint8_t *const wires[] = {plus, nonzero};
    change c = change_of(theta, wires, keep, scale);
    const size_t done = terse_walk_fetching(n, ternary_round, &c);
    terse_lion_scalar.apply_ternary(theta + done, plus + done / 8, nonzero + done / 8, n - done, keep, scale);
}

// 2 c = (2^planes - 1) + the sum of +2^k where bit k of c is 1 and -2^k where it is 0: small whole numbers, exact in fp32.
TERSE_ROUND_FUNCTION tally_round(void *context, size_t i, int fetches) {
    const change *c = context;
    if (fetches) terse_prefetch(c->theta + i + TERSE_WALK_GROUP);
    __m256 balance[8] = {c->none, c->none, c->none, c->none, c->none, c->none, c->none, c->none};  // 2 c - ranks
    for (int plane = 0; plane < c->planes; plane++) {
        const uint64_t word = load_word(c->wires[plane] + i / 8);
        const __m256 minus = _mm256_set1_ps(-(float)(1 << plane));
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) balance[k] = _mm256_add_ps(balance[k], negate(c, minus, spread(word, k)));
    }
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        float *theta = c->theta + i + 8 * k;
        const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(theta), c->keep);
        _mm256_storeu_ps(theta, _mm256_add_ps(kept, _mm256_mul_ps(_mm256_div_ps(balance[k], c->all), c->scale)));
    }
}

static terse_optimizer_status apply_tally(float *theta, const uint8_t *const *planes, size_t ranks, size_t n, float keep, float scale) {
    if (ranks < 1 || ranks > TERSE_TALLY_MAX_RANKS) return TERSE_OPTIMIZER_BAD_RANKS;
    change c = change_of(theta, planes, keep, scale);
    c.planes = tally_planes(ranks), c.all = _mm256_set1_ps((float)ranks), c.none = _mm256_set1_ps((float)((1 << c.planes) - 1) - (float)ranks);
    const size_t done = terse_walk_fetching(n, tally_round, &c);
    const uint8_t *rest[TALLY_PLANES];
    for (int k = 0; k < c.planes; k++) rest[k] = planes[k] + done / 8;
    return terse_lion_scalar.apply_tally(theta + done, rest, ranks, n - done, keep, scale);
}

const terse_lion terse_lion_avx2 = {"avx2", vote, mix, step, apply_signs, apply_ternary, apply_tally};
