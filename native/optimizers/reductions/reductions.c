#include "reductions.h"

typedef struct sum {
    const float *x;
    double partial[PARTIALS];
} sum;

TERSE_ROUND_FUNCTION square_round(void *context, size_t i) {
    sum *s = context;
    for (size_t k = 0; k < TERSE_ROUND; k++) s->partial[k % PARTIALS] += (double)s->x[i + k] * s->x[i + k];
}

static double sum_of_squares(const float *x, size_t n) {
    sum s = {x, {0}};
    const size_t done = reductions_walk(x, n, square_round, &s);
    return reductions_finish(s.partial, x, done, n);
}

const terse_reductions terse_reductions_scalar = {"scalar", sum_of_squares};
