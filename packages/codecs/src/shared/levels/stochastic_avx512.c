#include "../random/random_avx512.h"
#include "../fields/fields_avx512.h"
#include "stochastic.h"

typedef struct drawing {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    uint64_t index;
    terse_packing_avx512 packing;
    terse_random random;
    __m512d factor, most;          // uniform: times 2^32
    __m512d lowest, times;         // logarithmic: level 1 as a part of the scale, and what makes 2^32 of it
    __m512i exponent;              // that of level 0, in the upper halves
    __m512i s;
} drawing;

static drawing drawing_of(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, uint64_t index) {
    const int s = (int)terse_levels_a_side(o);
    const double unit = o->levels == TERSE_LEVELS_LOGARITHMIC ? 1.0 : 0x1p32;
    return (drawing){
        fields, x, terse_levels_ahead(o), index, terse_packing_avx512_of(terse_field_width(o)), terse_random_of(o->seed, o->step),
        _mm512_set1_pd(terse_stochastic_factor(o, scale) * unit), _mm512_set1_pd(terse_stochastic_most(o) * unit),
        _mm512_castsi512_pd(_mm512_set1_epi64((long long)(1024 - s) << 52)), _mm512_castsi512_pd(_mm512_set1_epi64((long long)(1023 + s - 1 + 32) << 52)),
        _mm512_set1_epi64((long long)(1023 - s) << 32), _mm512_set1_epi8((char)s),
    };
}

static inline __m512d scaled(const drawing *d, const float *x) {
    enum { LESSER_MAGNITUDE = 0x0A };
    return _mm512_range_pd(_mm512_mul_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x)), d->factor), d->most, LESSER_MAGNITUDE);
}

// Draws one of the two integers around v 2^-32; the result is in the upper half of each lane.
static inline __m512i draw(__m512i words, __m512d v) {
    enum { NOT_A_AND_B_OR_C = 0xAE };
    const __m512i left = _mm512_ternarylogic_epi64(words, _mm512_set1_epi64(0xffffffff), _mm512_set1_epi64(1), NOT_A_AND_B_OR_C);
    return _mm512_add_epi64(_mm512_cvt_roundpd_epi64(v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC), left);
}

static inline __m512i uniform_8(const drawing *d, const float *x, __m512i words) { return draw(words, scaled(d, x)); }

static inline __m512i logarithmic_8(const drawing *d, const float *x, __m512i words) {
    const __m512d v = scaled(d, x), whole = _mm512_set1_pd(0x1p32);
    const __m512i bits = _mm512_castpd_si512(v), fraction = _mm512_and_si512(bits, _mm512_set1_epi64(0xfffffffffffff));
    const __mmask8 is_low = _mm512_cmp_pd_mask(v, d->lowest, _CMP_LT_OQ);
    const __m512d mantissa = _mm512_or_pd(_mm512_castsi512_pd(fraction), whole);
    const __m512d p = _mm512_mask_mul_pd(_mm512_sub_pd(mantissa, whole), is_low, v, d->times);
    const __m512i exponent = _mm512_and_si512(_mm512_srli_epi64(bits, 20), _mm512_set1_epi64(0xfff00000000));
    return _mm512_add_epi64(_mm512_maskz_sub_epi64((__mmask8)~is_low, exponent, d->exponent), draw(words, p));
}

static inline __attribute__((always_inline)) __m512i level_16(const drawing *d, size_t i, const __m512i words[2], const terse_levels levels) {
    const __m512i upper = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    const float *x = d->x + i;
    const __m512i low = levels == TERSE_LEVELS_LOGARITHMIC ? logarithmic_8(d, x, words[0]) : uniform_8(d, x, words[0]);
    const __m512i high = levels == TERSE_LEVELS_LOGARITHMIC ? logarithmic_8(d, x + 8, words[1]) : uniform_8(d, x + 8, words[1]);
    __m512i level = _mm512_permutex2var_epi32(low, upper, high);
    const __m512 values = _mm512_loadu_ps(x);
    if (levels == TERSE_LEVELS_WITHOUT_ZERO) {
        const __mmask16 not_zero = _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        level = _mm512_mask_max_epi32(level, not_zero, level, _mm512_set1_epi32(1));
    }
    return _mm512_mask_sub_epi32(level, _mm512_movepi32_mask(_mm512_castps_si512(values)), _mm512_setzero_si512(), level);
}

static inline __attribute__((always_inline)) void draw_round(drawing *d, size_t i, const terse_levels levels) {
    __m512i words[8], level[4];
    terse_random_words_avx512(&d->random, d->index + i, words);
    terse_prefetch(d->x + i + d->ahead);
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++) level[k] = level_16(d, i + 16 * k, words + 2 * k, levels);
    terse_pack_64_avx512(&d->packing, d->fields, i, _mm512_add_epi8(terse_bytes_avx512(level[0], level[1], level[2], level[3]), d->s));
}

#include "stochastic_vector.h"

void terse_stochastic_avx512(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    walk(fields, x, o, scale, from, to);
}
