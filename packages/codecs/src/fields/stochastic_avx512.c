#include "../random/random_avx512.h"
#include "fields_avx512.h"
#include "stochastic.h"
#include "terse/walk.h"

typedef struct drawing {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    uint64_t index;
    terse_packing_avx512 packing;
    terse_random_avx512 random;
    __m512d factor, most, lowest;  // lowest: logarithmic, level 1; as a part of the scale
    __m512i exponent;              // and that of level 0
    __m512i s;
} drawing;

static inline __m512d scaled(const drawing *d, __m256 x) {
    return _mm512_min_pd(_mm512_mul_pd(_mm512_abs_pd(_mm512_cvtps_pd(x)), d->factor), d->most);
}

// The lanes where the draw falls below p.
static inline __mmask8 draw(__m256i words, __m512d p) {
    const __m512d r = _mm512_cvtepi32_pd(_mm256_srli_epi32(words, 1));
    return _mm512_cmp_pd_mask(r, _mm512_mul_pd(p, _mm512_set1_pd(0x1p31)), _CMP_LT_OQ);
}

static inline __m256i uniform_8(const drawing *d, __m256 x, __m256i words) {
    const __m512d v = scaled(d, x), below = _mm512_roundscale_pd(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    return _mm512_cvtpd_epi32(_mm512_mask_add_pd(below, draw(words, _mm512_sub_pd(v, below)), below, _mm512_set1_pd(1.0)));
}

static inline __m256i logarithmic_8(const drawing *d, __m256 x, __m256i words) {
    const __m512d v = scaled(d, x), one = _mm512_set1_pd(1.0);
    const __mmask8 is_low = _mm512_cmp_pd_mask(v, d->lowest, _CMP_LT_OQ);
    const __m512d mantissa = _mm512_or_pd(_mm512_and_pd(v, _mm512_castsi512_pd(_mm512_set1_epi64(0xfffffffffffff))), one);
    const __m512d p = _mm512_mask_div_pd(_mm512_sub_pd(mantissa, one), is_low, v, d->lowest);
    const __m512i k = _mm512_maskz_sub_epi64((__mmask8)~is_low, _mm512_srli_epi64(_mm512_castpd_si512(v), 52), d->exponent);
    return _mm512_cvtepi64_epi32(_mm512_mask_add_epi64(k, draw(words, p), k, _mm512_set1_epi64(1)));
}

static inline __attribute__((always_inline)) __m128i level_16(const drawing *d, size_t i, __m512i words, const terse_levels levels) {
    const __m512 x = _mm512_loadu_ps(d->x + i);
    const __m256 low = _mm512_castps512_ps256(x), high = _mm512_extractf32x8_ps(x, 1);
    const __m256i low_words = _mm512_castsi512_si256(words), high_words = _mm512_extracti32x8_epi32(words, 1);
    const __m256i low_level = levels == TERSE_LEVELS_LOGARITHMIC ? logarithmic_8(d, low, low_words) : uniform_8(d, low, low_words);
    const __m256i high_level = levels == TERSE_LEVELS_LOGARITHMIC ? logarithmic_8(d, high, high_words) : uniform_8(d, high, high_words);
    __m512i level = _mm512_inserti32x8(_mm512_castsi256_si512(low_level), high_level, 1);
    if (levels == TERSE_LEVELS_WITHOUT_ZERO) {
        const __mmask16 not_zero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        level = _mm512_mask_max_epi32(level, not_zero, level, _mm512_set1_epi32(1));
    }
    return _mm512_cvtepi32_epi8(_mm512_mask_sub_epi32(level, _mm512_movepi32_mask(_mm512_castps_si512(x)), _mm512_setzero_si512(), level));
}

static inline __attribute__((always_inline)) void draw_round(const drawing *d, size_t i, const terse_levels levels) {
    __m512i words[4];
    terse_random_words_avx512(&d->random, d->index + i, words);
    terse_ask_ahead(d->x + i + d->ahead);
    __m512i all = _mm512_castsi128_si512(level_16(d, i, words[0], levels));
    all = _mm512_inserti32x4(all, level_16(d, i + 16, words[1], levels), 1);
    all = _mm512_inserti32x4(all, level_16(d, i + 32, words[2], levels), 2);
    all = _mm512_inserti32x4(all, level_16(d, i + 48, words[3], levels), 3);
    terse_pack_64_avx512(&d->packing, d->fields, i, _mm512_add_epi8(all, d->s));
}

TERSE_ROUND_FUNCTION uniform_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_UNIFORM); }
TERSE_ROUND_FUNCTION without_zero_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_WITHOUT_ZERO); }
TERSE_ROUND_FUNCTION logarithmic_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_LOGARITHMIC); }

void terse_stochastic_avx512(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 63) / 64 * 64;  // where draws begin
    size_t done = from;
    if (first + 64 <= to) {
        terse_stochastic_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o), width = terse_field_width(o);
        drawing d = {
            fields + first / 8 * width, x + first, terse_levels_ahead(o), o->index + first, terse_packing_avx512_of(width), terse_random_avx512_of(o->seed, o->step),
            _mm512_set1_pd(terse_stochastic_factor(o, scale)), _mm512_set1_pd(terse_stochastic_most(o)),
            _mm512_castsi512_pd(_mm512_set1_epi64((long long)(1024 - s) << 52)), _mm512_set1_epi64(1023 - (int)s), _mm512_set1_epi8((char)s),
        };
        done = first + (o->levels == TERSE_LEVELS_UNIFORM       ? terse_walk(to - first, uniform_round, &d)
                        : o->levels == TERSE_LEVELS_LOGARITHMIC ? terse_walk(to - first, logarithmic_round, &d)
                                                                : terse_walk(to - first, without_zero_round, &d));
    }
    terse_stochastic_scalar(fields, x, o, scale, done, to);
}
