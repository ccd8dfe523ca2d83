#include <immintrin.h>
#include <string.h>

#include "reductions.h"
#include "terse/walk.h"

// Chunks that are read in turn, as walk.h does with four pages, and the prefetch distance in elements.
enum { SIDE_BY_SIDE = 4, AHEAD = 512 };

enum sums { MAGNITUDES, SQUARES, SQUARES_AND_SIGNS };

static inline __attribute__((always_inline)) __m256d term(__m128 x, const enum sums of) {
    const __m256d value = _mm256_cvtps_pd(x);
    return of == MAGNITUDES ? _mm256_andnot_pd(_mm256_set1_pd(-0.0), value) : _mm256_mul_pd(value, value);
}

// Elements i .. i + 63: partial[j] += x[i + j], x[i + j + 16], ...
static inline __attribute__((always_inline)) void add_64(double partial[16], const float *x, size_t i, terse_signs signs, const enum sums of) {
    terse_prefetch(x + i + AHEAD);
    for (size_t j = 0; j < 16; j += 4) {
        __m256d sum = _mm256_loadu_pd(partial + j);
        for (size_t k = j; k < 64; k += 16) sum = _mm256_add_pd(sum, term(_mm_loadu_ps(x + i + k), of));
        _mm256_storeu_pd(partial + j, sum);
    }
    if (of != SQUARES_AND_SIGNS) return;
    uint64_t word = 0;
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; k++) {
        const __m256 values = _mm256_loadu_ps(x + i + 8 * k), zero = _mm256_setzero_ps();
        const __m256 plus = signs.zero_is_plus ? _mm256_cmp_ps(values, zero, _CMP_GE_OQ) : _mm256_cmp_ps(values, zero, _CMP_GT_OQ);
        word |= (uint64_t)(unsigned)_mm256_movemask_ps(plus) << (8 * k);
    }
    memcpy(signs.bytes + i / 8, &word, 8);
}

static inline __attribute__((always_inline)) void sum(double *of_chunks, const float *x, size_t n, terse_signs signs, const enum sums of) {
    size_t at = 0;
    for (; at + SIDE_BY_SIDE * TERSE_REDUCTION_CHUNK <= n; at += SIDE_BY_SIDE * TERSE_REDUCTION_CHUNK) {
        double partial[SIDE_BY_SIDE][16] = {{0}};
        for (size_t i = 0; i < TERSE_REDUCTION_CHUNK; i += 64)
            for (size_t c = 0; c < SIDE_BY_SIDE; c++) add_64(partial[c], x, at + c * TERSE_REDUCTION_CHUNK + i, signs, of);
        for (size_t c = 0; c < SIDE_BY_SIDE; c++) *of_chunks++ = terse_reductions_fold(partial[c]);
    }
    for (; at < n; at += TERSE_REDUCTION_CHUNK) {
        const size_t end = n - at < TERSE_REDUCTION_CHUNK ? n : at + TERSE_REDUCTION_CHUNK;
        double partial[16] = {0};
        size_t i = at;
        for (; i + 64 <= end; i += 64) add_64(partial, x, i, signs, of);
        if (of == SQUARES_AND_SIGNS) terse_write_signs(signs.bytes + i / 8, x + i, end - i, signs.zero_is_plus);
        for (; i < end; i++) {
            const double value = x[i];
            partial[(i - at) % 16] += of == MAGNITUDES ? __builtin_fabs(value) : value * value;
        }
        *of_chunks++ = terse_reductions_fold(partial);
    }
}

static void magnitudes_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs none) { sum(of_chunks, x, n, none, MAGNITUDES); }
static void squares_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs none) { sum(of_chunks, x, n, none, SQUARES); }
static void squares_and_signs_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs signs) { sum(of_chunks, x, n, signs, SQUARES_AND_SIGNS); }
static double sum_of_magnitudes(const float *x, size_t n) { return terse_reductions_sum(magnitudes_of_chunks, x, n, (terse_signs){0}); }
static double sum_of_squares(const float *x, size_t n) { return terse_reductions_sum(squares_of_chunks, x, n, (terse_signs){0}); }
static double sum_of_squares_and_signs(uint8_t *signs, const float *x, size_t n, int zero_is_plus) {
    return terse_reductions_sum(squares_and_signs_of_chunks, x, n, (terse_signs){signs, zero_is_plus});
}

typedef struct looking {
    const float *x;
    size_t ahead;
    __m256i most[2];
} looking;

TERSE_ROUND_FUNCTION look(void *context, size_t i) {
    looking *l = context;
    terse_prefetch(l->x + i + l->ahead);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(l->x + i + 8 * k));
        l->most[k % 2] = _mm256_max_epi32(l->most[k % 2], _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff)));
    }
}

static float largest_of_part(const float *x, size_t n) {
    looking l = {x, n < TERSE_WALK_GROUP ? AHEAD : TERSE_WALK_GROUP, {_mm256_setzero_si256(), _mm256_setzero_si256()}};
    const size_t done = terse_walk(n, look, &l);
    float found[9];
    _mm256_storeu_ps(found, _mm256_castsi256_ps(_mm256_max_epi32(l.most[0], l.most[1])));
    found[8] = terse_reductions_scalar.largest(x + done, n - done);
    return terse_reductions_scalar.largest(found, 9);
}

static float largest(const float *x, size_t n) { return terse_reductions_largest(largest_of_part, x, n); }

const terse_reductions terse_reductions_avx2 = {sum_of_magnitudes, sum_of_squares, sum_of_squares_and_signs, largest};
