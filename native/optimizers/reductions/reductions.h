#ifndef TERSE_REDUCTIONS_H
#define TERSE_REDUCTIONS_H
#include "terse/optimizers.h"
#include "terse/walk.h"

extern const terse_reductions terse_reductions_scalar, terse_reductions_avx2;

enum { PARTIALS = 16 };  // partial sums: enough to hide the latency of four vector adds

// The order of the additions, which defines the sum: through groups of four pages, a round of each page in turn.
// Returns the index of the first element after the whole rounds. Memory is read in order all the same: the next group
// is prefetched so, of x and, unless it is NULL, of y.
static inline __attribute__((always_inline)) size_t reductions_walk(const float *x, const float *y, size_t n,
                                                                    void (*round)(void *context, size_t i),
                                                                    void *context) {
    size_t i = 0;
    for (; i + TERSE_WALK_GROUP <= n; i += TERSE_WALK_GROUP)
        for (size_t at = 0, next = i + TERSE_WALK_GROUP; at < TERSE_PAGE; at += TERSE_ROUND)
            for (size_t page = 0; page < TERSE_WALK_GROUP; page += TERSE_PAGE, next += TERSE_ROUND) {
                terse_prefetch(x + next);
                if (y) terse_prefetch(y + next);
                round(context, i + page + at);
            }
    for (; i + TERSE_ROUND <= n; i += TERSE_ROUND) round(context, i);
    return i;
}

// Adds the tail x[i ..] to the partial sums, then adds these as a tree. All implementations end with this.
static inline double reductions_finish(double *partial, const float *x, size_t i, size_t n) {
    for (; i < n; i++) partial[i % PARTIALS] += (double)x[i] * x[i];
    for (int width = PARTIALS / 2; width; width /= 2)
        for (int j = 0; j < width; j++) partial[j] += partial[j + width];
    return partial[0];
}

// The same after the walk of a difference a - b, whose tail it writes.
static inline double reductions_finish_difference(double *partial, float *difference, const float *a, const float *b,
                                                  size_t i, size_t n) {
    for (size_t k = i; k < n; k++) difference[k] = a[k] - b[k];
    return reductions_finish(partial, difference, i, n);
}

#endif
