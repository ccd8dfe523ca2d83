#include "../fields/fields_avx512.h"
#include "l1.h"
#include "terse/walk.h"

typedef struct quantising {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    terse_packing_avx512 packing;
    __m512d factor;
    __m256 most;  // what becomes level s
    __m512i s;
} quantising;

static inline __m256i level_8(const quantising *q, __m256 x) {
    const __m256 least = _mm256_xor_ps(q->most, _mm256_set1_ps(-0.0f));
    return _mm512_cvtpd_epi32(_mm512_mul_pd(_mm512_cvtps_pd(_mm256_max_ps(_mm256_min_ps(x, q->most), least)), q->factor));
}

static inline __m128i level_16(const quantising *q, const float *x) {
    const __m256i low = level_8(q, _mm256_loadu_ps(x)), high = level_8(q, _mm256_loadu_ps(x + 8));
    return _mm512_cvtepi32_epi8(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}

TERSE_ROUND_FUNCTION quantise_round(void *context, size_t i) {
    const quantising *q = context;
    terse_ask_ahead(q->x + i + q->ahead);
    __m512i levels = _mm512_castsi128_si512(level_16(q, q->x + i));
    levels = _mm512_inserti32x4(levels, level_16(q, q->x + i + 16), 1);
    levels = _mm512_inserti32x4(levels, level_16(q, q->x + i + 32), 2);
    levels = _mm512_inserti32x4(levels, level_16(q, q->x + i + 48), 3);
    terse_pack_64_avx512(&q->packing, q->fields, i, _mm512_add_epi8(levels, q->s));
}

static void quantise(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 7) / 8 * 8;
    size_t done = from;
    if (first < to) {
        terse_l1_quantise_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o);
        const quantising q = {
            fields + first / 8 * terse_field_width(o), x + first, terse_levels_ahead(o), terse_packing_avx512_of(terse_field_width(o)),
            _mm512_set1_pd(terse_l1_factor(o, scale)), _mm256_set1_ps((float)(s / terse_l1_factor(o, scale))), _mm512_set1_epi8((char)s),
        };
        done = first + terse_walk(to - first, quantise_round, (void *)&q);
    }
    terse_l1_quantise_scalar(fields, x, o, scale, done, to);
}

static double scale_of(const float *x, size_t n) { return terse_measures_avx512.sum_of_magnitudes(x, n) / (double)n; }

static const terse_levels_codec l1 = {TERSE_L1_REACH, scale_of, quantise, terse_fields_add_avx512};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, avx512)
