#include "terse/parallel.h"
#include "reductions.h"

enum { BATCH = 256 };  // chunks summed at a time

typedef struct batch {
    const terse_reductions *reductions;
    const float *x;
    size_t n;
    double sums[BATCH];
} batch;

static size_t end_of(const batch *b, size_t chunk) {
    return (chunk + 1) * TERSE_REDUCTION_CHUNK < b->n ? (chunk + 1) * TERSE_REDUCTION_CHUNK : b->n;
}

static void sum_part(void *context, size_t begin, size_t end) {
    batch *b = context;
    for (size_t chunk = begin / TERSE_REDUCTION_CHUNK; chunk * TERSE_REDUCTION_CHUNK < end; chunk++) {
        const size_t from = chunk * TERSE_REDUCTION_CHUNK;
        b->sums[chunk] = b->reductions->sum_of_squares(b->x + from, end_of(b, chunk) - from);
    }
}

double terse_sum_of_squares(const terse_reductions *reductions, const float *x, size_t n) {
    double sum = 0;
    for (size_t at = 0; at < n; at += (size_t)BATCH * TERSE_REDUCTION_CHUNK) {
        const size_t left = n - at, most = (size_t)BATCH * TERSE_REDUCTION_CHUNK;
        batch b = {reductions, x + at, left < most ? left : most, {0}};
        terse_parallel(b.n, TERSE_REDUCTION_CHUNK, sum_part, &b);
        for (size_t chunk = 0; chunk * TERSE_REDUCTION_CHUNK < b.n; chunk++) sum += b.sums[chunk];
    }
    return sum;
}
