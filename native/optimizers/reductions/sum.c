#include "terse/parallel.h"
#include "reductions.h"

enum {
    BATCH = 256,      // chunks summed at a time
    LARGE = 1 << 23,  // elements, 32 MiB: what is written then has left the caches before it is read
};

typedef struct batch {
    const terse_reductions *reductions;
    const float *x;     // NULL:
    float *difference;  // of a and b
    const float *a, *b;
    int streams;
    size_t n;
    double sums[BATCH];
} batch;

static size_t end_of(const batch *b, size_t chunk) {
    return (chunk + 1) * TERSE_REDUCTION_CHUNK < b->n ? (chunk + 1) * TERSE_REDUCTION_CHUNK : b->n;
}

static void sum_part(void *context, size_t begin, size_t end) {
    batch *b = context;
    for (size_t chunk = begin / TERSE_REDUCTION_CHUNK; chunk * TERSE_REDUCTION_CHUNK < end; chunk++) {
        const size_t from = chunk * TERSE_REDUCTION_CHUNK, length = end_of(b, chunk) - from;
        b->sums[chunk] = b->x ? b->reductions->sum_of_squares(b->x + from, length)
                              : b->reductions->difference(b->difference + from, b->a + from, b->b + from, length,
                                                          b->streams);
    }
}

static double sum_in_chunks(const terse_reductions *reductions, const float *x, float *difference, const float *a,
                            const float *b, size_t n) {
    double sum = 0;
    for (size_t at = 0; at < n; at += (size_t)BATCH * TERSE_REDUCTION_CHUNK) {
        const size_t left = n - at, most = (size_t)BATCH * TERSE_REDUCTION_CHUNK;
        batch next = {.reductions = reductions, .streams = n >= LARGE, .n = left < most ? left : most};
        if (x) next.x = x + at;
        else next.difference = difference + at, next.a = a + at, next.b = b + at;
        terse_parallel(next.n, TERSE_REDUCTION_CHUNK, sum_part, &next);
        for (size_t chunk = 0; chunk * TERSE_REDUCTION_CHUNK < next.n; chunk++) sum += next.sums[chunk];
    }
    return sum;
}

double terse_sum_of_squares(const terse_reductions *reductions, const float *x, size_t n) {
    return sum_in_chunks(reductions, x, NULL, NULL, NULL, n);
}

double terse_difference(const terse_reductions *reductions, float *difference, const float *a, const float *b,
                        size_t n) {
    return sum_in_chunks(reductions, NULL, difference, a, b, n);
}
