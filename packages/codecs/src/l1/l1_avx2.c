#include "../fields/fields_avx2.h"
#include "l1.h"
#include "terse/walk.h"

typedef struct quantising {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    terse_packing_avx2 packing;
    __m256d factor, most;
    __m256i s;
} quantising;

static inline __m128i level_4(const quantising *q, __m128 x) {
    const __m256d level = _mm256_mul_pd(_mm256_cvtps_pd(x), q->factor), least = _mm256_sub_pd(_mm256_setzero_pd(), q->most);
    return _mm256_cvtpd_epi32(_mm256_max_pd(_mm256_min_pd(level, q->most), least));
}

static inline __m256i level_8(const quantising *q, const float *x) {
    return _mm256_set_m128i(level_4(q, _mm_loadu_ps(x + 4)), level_4(q, _mm_loadu_ps(x)));
}

static inline __m256i field_32(const quantising *q, const float *x) {
    return _mm256_add_epi8(terse_bytes_avx2(level_8(q, x), level_8(q, x + 8), level_8(q, x + 16), level_8(q, x + 24)), q->s);
}

TERSE_ROUND_FUNCTION quantise_round(void *context, size_t i) {
    const quantising *q = context;
    terse_ask_ahead(q->x + i + q->ahead);
    terse_pack_64_avx2(&q->packing, q->fields, i, field_32(q, q->x + i), field_32(q, q->x + i + 32));
}

static void quantise(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 7) / 8 * 8;
    size_t done = from;
    if (first < to) {
        terse_l1_quantise_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o);
        const quantising q = {
            fields + first / 8 * terse_field_width(o), x + first, terse_levels_ahead(o), terse_packing_avx2_of(terse_field_width(o)),
            _mm256_set1_pd(terse_l1_factor(o, scale)), _mm256_set1_pd(s), _mm256_set1_epi8((char)s),
        };
        done = first + terse_walk(to - first, quantise_round, (void *)&q);
    }
    terse_l1_quantise_scalar(fields, x, o, scale, done, to);
}

static double scale_of(const float *x, size_t n) { return terse_measures_avx2.sum_of_magnitudes(x, n) / (double)n; }

static const terse_levels_codec l1 = {TERSE_L1_REACH, scale_of, quantise, terse_fields_add_avx2};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, avx2)
