#include <immintrin.h>

#include "fields.h"
#include "terse/walk.h"

typedef struct adding {
    float *sum;
    const uint8_t *fields;
    size_t width, ahead;
    __m256i place, shift, mask, most;  // of 8 fields: their bytes, where they begin in them, what is theirs
    __m256d offset, unit;
    __m256 scale;
} adding;

static inline __m128 value(const adding *a, __m128i field) {
    return _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_sub_pd(_mm256_cvtepi32_pd(field), a->offset), a->unit));
}

TERSE_ROUND_FUNCTION add_round(void *context, size_t i) {
    const adding *a = context;
    terse_prefetch(a->sum + i + a->ahead);
    for (size_t k = 0; k < 64; k += 8) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(a->fields + (i + k) / 8 * a->width));
        const __m256i placed = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), a->place);
        const __m256i field = _mm256_min_epu32(_mm256_and_si256(_mm256_srlv_epi32(placed, a->shift), a->mask), a->most);
        const __m256 values = _mm256_set_m128(value(a, _mm256_extracti128_si256(field, 1)), value(a, _mm256_castsi256_si128(field)));
        _mm256_storeu_ps(a->sum + i + k, _mm256_add_ps(_mm256_loadu_ps(a->sum + i + k), _mm256_mul_ps(values, a->scale)));
    }
}

void terse_fields_add_avx2(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *m, float scale, size_t from, size_t to) {
    const __m256i bit = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)m->width)), byte = _mm256_srli_epi32(bit, 3);
    const __m256i next = _mm256_slli_epi32(_mm256_add_epi32(byte, _mm256_set1_epi32(1)), 8), nothing = _mm256_set1_epi32((int)0x80800000);
    // Eight fields are read as 16 bytes: the last of a round must not reach beyond the last byte.
    const size_t bytes = terse_field_bytes(n, m->width), readable = bytes < 16 ? 0 : (bytes - 16) * 8 / m->width / 8 * 8 + 8;
    const size_t first = (from + 7) / 8 * 8, last = to < readable ? to : readable;
    size_t done = from;
    if (first < last) {
        terse_fields_add_scalar(sum, fields, n, m, scale, from, first);
        const adding a = {
            sum + first, fields + first / 8 * m->width, m->width, terse_fields_ahead(to - from),
            _mm256_or_si256(_mm256_or_si256(byte, next), nothing), _mm256_and_si256(bit, _mm256_set1_epi32(7)),
            _mm256_set1_epi32((1 << m->width) - 1), _mm256_set1_epi32((int)m->most),
            _mm256_set1_pd(m->offset), _mm256_set1_pd(m->unit), _mm256_set1_ps(scale),
        };
        done = first + terse_walk(last - first, add_round, (void *)&a);
    }
    terse_fields_add_scalar(sum, fields, n, m, scale, done, to);
}
