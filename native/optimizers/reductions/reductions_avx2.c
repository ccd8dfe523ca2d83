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
        s->partial[k % 4] = _mm256_add_pd(s->partial[k % 4], _mm256_mul_pd(v, v));  // the square of an fp32 is exact in
                                                                                    // fp64
    }
}

static double sum_of_squares(const float *x, size_t n) {
    sum s = {x, {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()}};
    const size_t done = reductions_walk(x, NULL, n, square_round, &s);
    double partial[PARTIALS];
    for (int k = 0; k < 4; k++) _mm256_storeu_pd(partial + 4 * k, s.partial[k]);
    return reductions_finish(partial, x, done, n);
}

typedef struct subtraction {
    float *difference;
    const float *a, *b;
    __m256d partial[4];
} subtraction;

static inline __attribute__((always_inline)) void subtract_64(subtraction *s, size_t i, const int streams) {
    if (!streams) terse_prefetch(s->difference + i + TERSE_NEAR);
#pragma GCC unroll 8
    for (int k = 0; k < 16; k += 2) {
        const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(s->a + i + 4 * k), _mm256_loadu_ps(s->b + i + 4 * k));
        if (streams) _mm256_stream_ps(s->difference + i + 4 * k, d);
        else _mm256_storeu_ps(s->difference + i + 4 * k, d);
        const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(d)),
                      high = _mm256_cvtps_pd(_mm256_extractf128_ps(d, 1));
        s->partial[k % 4] = _mm256_add_pd(s->partial[k % 4], _mm256_mul_pd(low, low));
        s->partial[k % 4 + 1] = _mm256_add_pd(s->partial[k % 4 + 1], _mm256_mul_pd(high, high));
    }
}

TERSE_ROUND_FUNCTION subtract_round(void *context, size_t i) { subtract_64(context, i, 0); }
TERSE_ROUND_FUNCTION stream_round(void *context, size_t i) { subtract_64(context, i, 1); }

static double difference(float *to, const float *a, const float *b, size_t n, int streams) {
    subtraction s = {to, a, b, {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()}};
    const int aligned = (uintptr_t)to % sizeof(__m256) == 0;  // as a streaming store needs it
    const size_t done = streams && aligned ? reductions_walk(a, b, n, stream_round, &s)
                                           : reductions_walk(a, b, n, subtract_round, &s);
    if (streams && aligned) _mm_sfence();
    double partial[PARTIALS];
    for (int k = 0; k < 4; k++) _mm256_storeu_pd(partial + 4 * k, s.partial[k]);
    return reductions_finish_difference(partial, to, a, b, done, n);
}

const terse_reductions terse_reductions_avx2 = {"avx2", sum_of_squares, difference};
