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
    const size_t done = reductions_walk(x, NULL, n, square_round, &s);
    return reductions_finish(s.partial, x, done, n);
}

typedef struct subtraction {
    float *difference;
    const float *a, *b;
    double partial[PARTIALS];
} subtraction;

TERSE_ROUND_FUNCTION subtract_round(void *context, size_t i) {
    subtraction *s = context;
    for (size_t k = 0; k < TERSE_ROUND; k++) {
        const float d = s->difference[i + k] = s->a[i + k] - s->b[i + k];
        s->partial[k % PARTIALS] += (double)d * d;
    }
}

static double difference(float *to, const float *a, const float *b, size_t n, int streams) {
    (void)streams;
    subtraction s = {to, a, b, {0}};
    const size_t done = reductions_walk(a, b, n, subtract_round, &s);
    return reductions_finish_difference(s.partial, to, a, b, done, n);
}

const terse_reductions terse_reductions_scalar = {"scalar", sum_of_squares, difference};
