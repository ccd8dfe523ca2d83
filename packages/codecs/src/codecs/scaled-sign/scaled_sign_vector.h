// What momentum.h asks for, in the words of terse/vector.h, which a file includes before this one.
#include "passing.h"

enum { WIDES = 16 / (LANES / 2) };  // that hold the partial sums

static inline __attribute__((always_inline)) vec rest(vec x, vec sent) {
    return CHOOSE(NOT_BELOW(x, SPLAT(0.0f)), x - sent, x + sent);
}

static inline __attribute__((always_inline)) mask measure(wide sums[WIDES], vec x, size_t k) {
    sums[2 * k % WIDES] += LOWER(x) * LOWER(x);
    sums[(2 * k + 1) % WIDES] += UPPER(x) * UPPER(x);
    return NOT_BELOW(x, SPLAT(0.0f));
}

static inline __attribute__((always_inline)) uint64_t momentum_block(const passing *p, double partial[16], float *x,
                                                                     const float *m, const float *g) {
    const vec keep = SPLAT(p->keep), add = SPLAT(p->add), sent = SPLAT(p->sent);
    wide sums[WIDES];
    mask plus[VECTORS];
    memcpy(sums, partial, sizeof sums);
    EACH_VECTOR {
        const vec left = rest(LOAD(x + LANES * k), sent);
        const vec next = FMA(add, LOAD(g + LANES * k), FMA(keep, LOAD(m + LANES * k), left));
        STORE(x + LANES * k, next);
        plus[k] = measure(sums, next, k);
    }
    memcpy(partial, sums, sizeof sums);
    return WORD(plus);
}

static inline __attribute__((always_inline)) uint64_t sum_block(const passing *p, double partial[16], float *x,
                                                                size_t byte) {
    vec sum[VECTORS];
    EACH_VECTOR sum[k] = rest(LOAD(x + LANES * k), SPLAT(p->sent));
    for (size_t r = 0; r < p->count; r++) {
        const uint64_t word = terse_load_word(bits_of(p, r) + byte);
        const vec scale = SPLAT(scale_of(p, r));
        EACH_VECTOR sum[k] += CHOOSE(LANES_OF(word, k), scale, -scale);
    }
    wide sums[WIDES];
    mask plus[VECTORS];
    memcpy(sums, partial, sizeof sums);
    EACH_VECTOR {
        STORE(x + LANES * k, sum[k]);
        plus[k] = measure(sums, sum[k], k);
    }
    memcpy(partial, sums, sizeof sums);
    return WORD(plus);
}

#include "momentum.h"
