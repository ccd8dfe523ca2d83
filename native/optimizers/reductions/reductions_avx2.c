#include <immintrin.h>

#include "reductions.h"

static double sum_of_squares(const float *x, size_t n) {
    __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    size_t i = 0;
    for (; i + PARTIALS <= n; i += PARTIALS)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * k));
            sum[k] = _mm256_add_pd(sum[k], _mm256_mul_pd(v, v));  // the square of an fp32 is exact in fp64
        }
    double partial[PARTIALS];
    for (int k = 0; k < 4; k++) _mm256_storeu_pd(partial + 4 * k, sum[k]);
    return reductions_finish(partial, x, i, n);
}

static void scale(float *x, size_t n, float k) {
    const __m256 factor = _mm256_set1_ps(k);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), factor));
    terse_reductions_scalar.scale(x + i, n - i, k);
}

const terse_reductions terse_reductions_avx2 = {"avx2", sum_of_squares, scale};
