// The kernel of terse/optimizers.h for SGD, in loops that a compiler turns into vector instructions: sgd.c and
// sgd_avx2.c compile it for different instructions, with the same bits.
#ifndef TERSE_SGD_H
#define TERSE_SGD_H
#include "element.h"
#include "terse/walk.h"

enum { BLOCK = 64 };  // elements that are checked before any of them is stored

static inline __attribute__((always_inline)) size_t sgd_step(float *restrict theta, float *restrict m,
                                                             const float *restrict g, size_t n,
                                                             const terse_sgd_options *options, int has_momentum,
                                                             int nesterov) {
    const sgd_weights w = sgd_weights_of(options);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        float next_m[BLOCK], u[BLOCK];
        terse_prefetch(theta + i + TERSE_NEAR);
        terse_prefetch(g + i + TERSE_NEAR);
        if (has_momentum) terse_prefetch(m + i + TERSE_NEAR);
        int bad = 0;
        for (size_t k = 0; k < count; k++) {
            const float d = decayed_gradient(w, g[i + k], theta[i + k]);
            u[k] = d;
            if (has_momentum) {
                next_m[k] = next_momentum(w, m[i + k], d);
                u[k] = sgd_update(w, nesterov, d, next_m[k]);
            }
            bad |= !is_real(u[k]);
        }
        if (bad)
            for (size_t k = 0; k < count; k++)
                if (!is_real(u[k])) return i + k;
        for (size_t k = 0; k < count; k++) theta[i + k] = theta[i + k] - w.lr * u[k];
        if (has_momentum)
            for (size_t k = 0; k < count; k++) m[i + k] = next_m[k];
    }
    return n;
}

static size_t step(float *theta, float *m, const float *g, size_t n, const terse_sgd_options *options) {
    if (!m) return sgd_step(theta, m, g, n, options, 0, 0);
    return options->nesterov ? sgd_step(theta, m, g, n, options, 1, 1) : sgd_step(theta, m, g, n, options, 1, 0);
}

#endif
