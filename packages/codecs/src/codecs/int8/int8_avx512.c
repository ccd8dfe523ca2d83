#include <immintrin.h>

#include "int8.h"
#include "terse/walk.h"

typedef struct writing {
    uint8_t *bytes;
    const float *x;
    size_t ahead;
    __m512d levels;
} writing;

static inline __attribute__((always_inline)) __m256i eight(const writing *w, size_t i) {
    return _mm512_cvtpd_epi32(_mm512_mul_pd(_mm512_cvtps_pd(_mm256_loadu_ps(w->x + i)), w->levels));
}

static inline __attribute__((always_inline)) void write_16(const writing *w, size_t i) {
    const __m512i q = _mm512_inserti64x4(_mm512_castsi256_si512(eight(w, i)), eight(w, i + 8), 1);
    _mm_storeu_si128((__m128i *)(w->bytes + i), _mm512_cvtepi32_epi8(q));
}

TERSE_ROUND_FUNCTION write_round(void *context, size_t i) {
    const writing *w = context;
    terse_prefetch(w->x + i + w->ahead);
    terse_prefetch_wire(w->bytes + i + w->ahead, TERSE_ROUND);
#pragma GCC unroll 4
    for (size_t k = 0; k < TERSE_ROUND; k += 16) write_16(w, i + k);
}

static void write(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels) {
    writing w = {bytes + begin, x + begin, terse_int8_ahead(end - begin), _mm512_set1_pd(levels)};
    size_t done = terse_walk(end - begin, write_round, &w);
    for (; done + 16 <= end - begin; done += 16) write_16(&w, done);
    terse_int8_write(bytes, x, begin + done, end, levels);
}

typedef struct reading {
    float *sum;
    const uint8_t *bytes;
    size_t ahead;
    __m512d step;
    __m512 scale;
} reading;

static inline __attribute__((always_inline)) __m256 values(const reading *r, __m256i q) {
    return _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtepi32_pd(q), r->step));
}

static inline __attribute__((always_inline)) void read_16(const reading *r, size_t i) {
    const __m512i q = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(r->bytes + i)));
    const __m256 low = values(r, _mm512_castsi512_si256(q)), high = values(r, _mm512_extracti64x4_epi64(q, 1));
    const __m512 value = _mm512_mul_ps(r->scale, _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1));
    _mm512_storeu_ps(r->sum + i, _mm512_add_ps(_mm512_loadu_ps(r->sum + i), value));
}

TERSE_ROUND_FUNCTION read_round(void *context, size_t i) {
    const reading *r = context;
    terse_prefetch(r->sum + i + r->ahead);
    terse_prefetch_wire(r->bytes + i + r->ahead, TERSE_ROUND);
#pragma GCC unroll 4
    for (size_t k = 0; k < TERSE_ROUND; k += 16) read_16(r, i + k);
}

static void read(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale) {
    reading r = {sum + begin, bytes + begin, terse_int8_ahead(end - begin), _mm512_set1_pd(step), _mm512_set1_ps(scale)};
    size_t done = terse_walk(end - begin, read_round, &r);
    for (; done + 16 <= end - begin; done += 16) read_16(&r, done);
    terse_int8_read(sum, bytes, begin + done, end, step, scale);
}

TERSE_INT8(avx512, write, read)
