#ifndef TERSE_REDUCTIONS_H
#define TERSE_REDUCTIONS_H
#include "terse/optimizers.h"
#include "terse/walk.h"

extern const terse_reductions terse_reductions_scalar, terse_reductions_avx2;

enum { PARTIALS = 16 };  // partial sums: enough to hide the latency of four vector adds

// Adds the tail x[i ..] to the partial sums, then adds these as a tree. All implementations end with this.
static inline double reductions_finish(double *partial, const float *x, size_t i, size_t n) {
    for (; i < n; i++) partial[i % PARTIALS] += (double)x[i] * x[i];
    for (int width = PARTIALS / 2; width; width /= 2)
        for (int j = 0; j < width; j++) partial[j] += partial[j + width];
    return partial[0];
}

#endif
