#include <immintrin.h>

#include "reductions.h"

typedef struct sum {
    const float *x;
    __m256d partial[4];
} sum;

TERSE_ROUND_FUNCTION square_round(void *context, size_t i) {
    sum *s = context;
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(s->x + i + 4 * k));
        s->partial[k % 4] = _mm256_add_pd(s->partial[k % 4], _mm256_mul_pd(v, v));  // the square of an fp32 is exact in fp64
    }
}

static double sum_of_squares(const float *x, size_t n) {
    sum s = {x, {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()}};
    const size_t done = reductions_walk(x, n, square_round, &s);
    double partial[PARTIALS];
    for (int k = 0; k < 4; k++) _mm256_storeu_pd(partial + 4 * k, s.partial[k]);
    return reductions_finish(partial, x, done, n);
}

const terse_reductions terse_reductions_avx2 = {"avx2", sum_of_squares};
