#include "../random/random_avx2.h"
#include "fields_avx2.h"
#include "stochastic.h"
#include "terse/walk.h"

typedef struct drawing {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    uint64_t index;
    terse_packing_avx2 packing;
    terse_random_avx2 random;
    __m256d factor, most, lowest;  // lowest: logarithmic, level 1; as a part of the scale
    __m256i exponent;              // and that of level 0
    __m256i s;
} drawing;

static inline __m256d scaled(const drawing *d, __m128 x) {
    return _mm256_min_pd(_mm256_mul_pd(_mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_cvtps_pd(x)), d->factor), d->most);
}

// -1 in the lanes where the draw falls below p.
static inline __m256d draw(__m128i words, __m256d p) {
    const __m256d r = _mm256_cvtepi32_pd(_mm_srli_epi32(words, 1));
    return _mm256_cmp_pd(r, _mm256_mul_pd(p, _mm256_set1_pd(0x1p31)), _CMP_LT_OQ);
}

static inline __m128i uniform_4(const drawing *d, __m128 x, __m128i words) {
    const __m256d v = scaled(d, x), below = _mm256_floor_pd(v);
    return _mm256_cvtpd_epi32(_mm256_add_pd(below, _mm256_and_pd(draw(words, _mm256_sub_pd(v, below)), _mm256_set1_pd(1.0))));
}

static inline __m128i logarithmic_4(const drawing *d, __m128 x, __m128i words) {
    const __m256d v = scaled(d, x), one = _mm256_set1_pd(1.0), is_low = _mm256_cmp_pd(v, d->lowest, _CMP_LT_OQ);
    const __m256d mantissa = _mm256_or_pd(_mm256_and_pd(v, _mm256_castsi256_pd(_mm256_set1_epi64x(0xfffffffffffff))), one);
    const __m256d p = _mm256_blendv_pd(_mm256_sub_pd(mantissa, one), _mm256_div_pd(v, d->lowest), is_low);
    const __m256i k = _mm256_sub_epi64(_mm256_srli_epi64(_mm256_castpd_si256(v), 52), d->exponent);
    const __m256i level = _mm256_sub_epi64(_mm256_andnot_si256(_mm256_castpd_si256(is_low), k), _mm256_castpd_si256(draw(words, p)));
    return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(level, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6)));
}

static inline __attribute__((always_inline)) __m256i level_8(const drawing *d, size_t i, __m256i words, const terse_levels levels) {
    const __m256 x = _mm256_loadu_ps(d->x + i);
    const __m128 low = _mm256_castps256_ps128(x), high = _mm256_extractf128_ps(x, 1);
    const __m128i low_words = _mm256_castsi256_si128(words), high_words = _mm256_extracti128_si256(words, 1);
    __m256i magnitude = levels == TERSE_LEVELS_LOGARITHMIC
        ? _mm256_set_m128i(logarithmic_4(d, high, high_words), logarithmic_4(d, low, low_words))
        : _mm256_set_m128i(uniform_4(d, high, high_words), uniform_4(d, low, low_words));
    if (levels == TERSE_LEVELS_WITHOUT_ZERO) {
        const __m256i not_zero = _mm256_castps_si256(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_UQ));
        magnitude = _mm256_max_epi32(magnitude, _mm256_srli_epi32(not_zero, 31));
    }
    return _mm256_sign_epi32(magnitude, _mm256_castps_si256(x));  // +0.0 has magnitude 0
}

static inline __attribute__((always_inline)) void draw_round(const drawing *d, size_t i, const terse_levels levels) {
    __m256i words[8], half[2];
    terse_random_words_avx2(&d->random, d->index + i, words);
    terse_ask_ahead(d->x + i + d->ahead);
    for (size_t k = 0; k < 2; k++) {
        const size_t at = i + 32 * k;
        half[k] = _mm256_add_epi8(terse_bytes_avx2(level_8(d, at, words[4 * k], levels), level_8(d, at + 8, words[4 * k + 1], levels),
                                                   level_8(d, at + 16, words[4 * k + 2], levels), level_8(d, at + 24, words[4 * k + 3], levels)), d->s);
    }
    terse_pack_64_avx2(&d->packing, d->fields, i, half[0], half[1]);
}

TERSE_ROUND_FUNCTION uniform_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_UNIFORM); }
TERSE_ROUND_FUNCTION without_zero_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_WITHOUT_ZERO); }
TERSE_ROUND_FUNCTION logarithmic_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_LOGARITHMIC); }

void terse_stochastic_avx2(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 63) / 64 * 64;  // where draws begin
    size_t done = from;
    if (first + 64 <= to) {
        terse_stochastic_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o), width = terse_field_width(o);
        drawing d = {
            fields + first / 8 * width, x + first, terse_levels_ahead(o), o->index + first, terse_packing_avx2_of(width), terse_random_avx2_of(o->seed, o->step),
            _mm256_set1_pd(terse_stochastic_factor(o, scale)), _mm256_set1_pd(terse_stochastic_most(o)),
            _mm256_castsi256_pd(_mm256_set1_epi64x((long long)(1024 - s) << 52)), _mm256_set1_epi64x(1023 - (int)s), _mm256_set1_epi8((char)s),
        };
        done = first + (o->levels == TERSE_LEVELS_UNIFORM       ? terse_walk(to - first, uniform_round, &d)
                        : o->levels == TERSE_LEVELS_LOGARITHMIC ? terse_walk(to - first, logarithmic_round, &d)
                                                                : terse_walk(to - first, without_zero_round, &d));
    }
    terse_stochastic_scalar(fields, x, o, scale, done, to);
}
