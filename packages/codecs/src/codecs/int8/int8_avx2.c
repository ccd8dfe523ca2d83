#include <immintrin.h>

#include "int8.h"
#include "terse/walk.h"

typedef struct writing {
    uint8_t *bytes;
    const float *x;
    size_t ahead;
    __m256d levels;
} writing;

static inline __attribute__((always_inline)) __m128i four(const writing *w, size_t i) {
    return _mm256_cvtpd_epi32(_mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(w->x + i)), w->levels));
}

static inline __attribute__((always_inline)) void write_16(const writing *w, size_t i) {
    const __m128i low = _mm_packs_epi32(four(w, i), four(w, i + 4)), high = _mm_packs_epi32(four(w, i + 8), four(w, i + 12));
    _mm_storeu_si128((__m128i *)(w->bytes + i), _mm_packs_epi16(low, high));
}

TERSE_ROUND_FUNCTION write_round(void *context, size_t i) {
    const writing *w = context;
    terse_prefetch(w->x + i + w->ahead);
    terse_prefetch_wire(w->bytes + i + w->ahead, TERSE_ROUND);
#pragma GCC unroll 4
    for (size_t k = 0; k < TERSE_ROUND; k += 16) write_16(w, i + k);
}

static void write(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels) {
    writing w = {bytes + begin, x + begin, terse_int8_ahead(end - begin), _mm256_set1_pd(levels)};
    size_t done = terse_walk(end - begin, write_round, &w);
    for (; done + 16 <= end - begin; done += 16) write_16(&w, done);
    terse_int8_write(bytes, x, begin + done, end, levels);
}

typedef struct reading {
    float *sum;
    const uint8_t *bytes;
    size_t ahead;
    __m256d step;
    __m256 scale;
} reading;

static inline __attribute__((always_inline)) void read_8(const reading *r, size_t i) {
    const __m256i q = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(r->bytes + i)));
    const __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(q)), r->step));
    const __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(q, 1)), r->step));
    const __m256 value = _mm256_mul_ps(r->scale, _mm256_set_m128(high, low));
    _mm256_storeu_ps(r->sum + i, _mm256_add_ps(_mm256_loadu_ps(r->sum + i), value));
}

TERSE_ROUND_FUNCTION read_round(void *context, size_t i) {
    const reading *r = context;
    terse_prefetch(r->sum + i + r->ahead);
    terse_prefetch_wire(r->bytes + i + r->ahead, TERSE_ROUND);
#pragma GCC unroll 8
    for (size_t k = 0; k < TERSE_ROUND; k += 8) read_8(r, i + k);
}

static void read(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale) {
    reading r = {sum + begin, bytes + begin, terse_int8_ahead(end - begin), _mm256_set1_pd(step), _mm256_set1_ps(scale)};
    size_t done = terse_walk(end - begin, read_round, &r);
    for (; done + 8 <= end - begin; done += 8) read_8(&r, done);
    terse_int8_read(sum, bytes, begin + done, end, step, scale);
}

TERSE_INT8(avx2, write, read)
