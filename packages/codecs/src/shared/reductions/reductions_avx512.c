#include <immintrin.h>
#include <string.h>

#include "reductions.h"
#include "terse/walk.h"

// Chunks that are read in turn, as walk.h does with four pages, and the prefetch distance in elements.
enum { SIDE_BY_SIDE = 4, AHEAD = 512 };

enum sums { MAGNITUDES, SQUARES, SQUARES_AND_SIGNS };

static inline __attribute__((always_inline)) __m512d term(__m256 x, const enum sums of) {
    const __m512d value = _mm512_cvtps_pd(x);
    return of == MAGNITUDES ? _mm512_abs_pd(value) : _mm512_mul_pd(value, value);
}

// Elements i .. i + 63: partial[j] += x[i + j], x[i + j + 16], ...
static inline __attribute__((always_inline)) void add_64(__m512d partial[2], const float *x, size_t i, terse_signs signs, const enum sums of) {
    terse_prefetch(x + i + AHEAD);
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; k++) partial[k % 2] = _mm512_add_pd(partial[k % 2], term(_mm256_loadu_ps(x + i + 8 * k), of));
    if (of != SQUARES_AND_SIGNS) return;
    uint64_t word = 0;
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++) {
        const __m512 values = _mm512_loadu_ps(x + i + 16 * k), zero = _mm512_setzero_ps();
        const __mmask16 plus = signs.zero_is_plus ? _mm512_cmp_ps_mask(values, zero, _CMP_GE_OQ) : _mm512_cmp_ps_mask(values, zero, _CMP_GT_OQ);
        word |= (uint64_t)plus << (16 * k);
    }
    memcpy(signs.bytes + i / 8, &word, 8);
}

static inline double fold(const __m512d partial[2]) {
    double in_memory[16];
    _mm512_storeu_pd(in_memory, partial[0]);
    _mm512_storeu_pd(in_memory + 8, partial[1]);
    return terse_reductions_fold(in_memory);
}

static inline __attribute__((always_inline)) void sum(double *of_chunks, const float *x, size_t n, terse_signs signs, const enum sums of) {
    size_t at = 0;
    for (; at + SIDE_BY_SIDE * TERSE_REDUCTION_CHUNK <= n; at += SIDE_BY_SIDE * TERSE_REDUCTION_CHUNK) {
        __m512d partial[SIDE_BY_SIDE][2];
        for (int c = 0; c < SIDE_BY_SIDE; c++) partial[c][0] = partial[c][1] = _mm512_setzero_pd();
        for (size_t i = 0; i < TERSE_REDUCTION_CHUNK; i += 64)
#pragma GCC unroll 4
            for (size_t c = 0; c < SIDE_BY_SIDE; c++) add_64(partial[c], x, at + c * TERSE_REDUCTION_CHUNK + i, signs, of);
        for (int c = 0; c < SIDE_BY_SIDE; c++) *of_chunks++ = fold(partial[c]);
    }
    for (; at < n; at += TERSE_REDUCTION_CHUNK) {
        const size_t end = n - at < TERSE_REDUCTION_CHUNK ? n : at + TERSE_REDUCTION_CHUNK;
        __m512d partial[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
        size_t i = at;
        for (; i + 64 <= end; i += 64) add_64(partial, x, i, signs, of);
        if (of == SQUARES_AND_SIGNS) terse_write_signs(signs.bytes + i / 8, x + i, end - i, signs.zero_is_plus);
        for (; i < end; i += 16) {  // lanes past the end add +0 to sums that are not negative: nothing
            const __mmask16 lanes = end - i < 16 ? (__mmask16)((1u << (end - i)) - 1) : 0xffff;
            const __m512 values = _mm512_maskz_loadu_ps(lanes, x + i);
            partial[0] = _mm512_add_pd(partial[0], term(_mm512_castps512_ps256(values), of));
            partial[1] = _mm512_add_pd(partial[1], term(_mm512_extractf32x8_ps(values, 1), of));
        }
        *of_chunks++ = fold(partial);
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
    __m512i most[2];
} looking;

static inline __m512i magnitudes(__m512i x) { return _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff)); }

TERSE_ROUND_FUNCTION look(void *context, size_t i) {
    looking *l = context;
    terse_prefetch(l->x + i + l->ahead);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) l->most[k % 2] = _mm512_max_epi32(l->most[k % 2], magnitudes(_mm512_loadu_si512(l->x + i + 16 * k)));
}

static float largest_of_part(const float *x, size_t n) {
    looking l = {x, n < TERSE_WALK_GROUP ? AHEAD : TERSE_WALK_GROUP, {_mm512_setzero_si512(), _mm512_setzero_si512()}};
    for (size_t i = terse_walk(n, look, &l); i < n; i += 16) {
        const __mmask16 lanes = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        l.most[0] = _mm512_max_epi32(l.most[0], magnitudes(_mm512_maskz_loadu_epi32(lanes, x + i)));
    }
    const int most = _mm512_reduce_max_epi32(_mm512_max_epi32(l.most[0], l.most[1]));
    float value;
    memcpy(&value, &most, 4);
    return value;
}

static float largest(const float *x, size_t n) { return terse_reductions_largest(largest_of_part, x, n); }

const terse_reductions terse_reductions_avx512 = {sum_of_magnitudes, sum_of_squares, sum_of_squares_and_signs, largest};
