#include <immintrin.h>

#include "fields.h"
#include "terse/walk.h"

typedef struct adding {
    float *sum;
    const uint8_t *fields;
    size_t width, ahead;
    __m512i place, shift, mask, most;  // of 16 fields: the bytes of each, the bit at which it begins, its bits
    __m512d offset, unit;
    __m512 scale;
} adding;

static inline __m512i fields_16(const adding *a, size_t i) {
    const uint8_t *at = a->fields + i / 8 * a->width;
    if (a->width == 16) return _mm512_min_epu32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)at)), a->most);
    const __m512i placed = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)at)), a->place);
    return _mm512_min_epu32(_mm512_and_si512(_mm512_srlv_epi32(placed, a->shift), a->mask), a->most);
}

static inline __m256 value(const adding *a, __m256i field) {
    return _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_sub_pd(_mm512_cvtepi32_pd(field), a->offset), a->unit));
}

TERSE_ROUND_FUNCTION add_round(void *context, size_t i) {
    const adding *a = context;
    terse_prefetch(a->sum + i + a->ahead);
    for (size_t k = i; k < i + 64; k += 16) {
        const __m512i field = fields_16(a, k);
        const __m512 values = _mm512_insertf32x8(_mm512_castps256_ps512(value(a, _mm512_castsi512_si256(field))), value(a, _mm512_extracti32x8_epi32(field, 1)), 1);
        _mm512_storeu_ps(a->sum + k, _mm512_add_ps(_mm512_loadu_ps(a->sum + k), _mm512_mul_ps(values, a->scale)));
    }
}

void terse_fields_add_avx512(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *m, float scale, size_t from, size_t to) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i bit = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)m->width)), byte = _mm512_srli_epi32(bit, 3);
    const __m512i next = _mm512_slli_epi32(_mm512_add_epi32(byte, _mm512_set1_epi32(1)), 8), nothing = _mm512_set1_epi32((int)0x80800000);
    // Sixteen fields are read as 16 bytes (fields of 16 bits: as 32), so the last read of a round must end before the last byte.
    const size_t bytes = terse_field_bytes(n, m->width), readable = bytes < 32 ? 0 : (bytes - 32) * 8 / m->width / 8 * 8 + 16;
    const size_t first = (from + 7) / 8 * 8, last = to < readable ? to : readable;
    size_t done = from;
    if (first < last) {
        terse_fields_add_scalar(sum, fields, n, m, scale, from, first);
        const adding a = {
            sum + first, fields + first / 8 * m->width, m->width, terse_fields_ahead(to - from),
            _mm512_or_si512(_mm512_or_si512(byte, next), nothing), _mm512_and_si512(bit, _mm512_set1_epi32(7)),
            _mm512_set1_epi32((1 << m->width) - 1), _mm512_set1_epi32((int)m->most), _mm512_set1_pd(m->offset), _mm512_set1_pd(m->unit), _mm512_set1_ps(scale),
        };
        done = first + terse_walk(last - first, add_round, (void *)&a);
    }
    terse_fields_add_scalar(sum, fields, n, m, scale, done, to);
}
