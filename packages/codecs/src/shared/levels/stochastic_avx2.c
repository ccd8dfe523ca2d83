#include "../random/random_avx2.h"
#include "../fields/fields_avx2.h"
#include "stochastic.h"

typedef struct drawing {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    uint64_t index;
    terse_packing_avx2 packing;
    terse_random random;
    __m256d factor, most;   // uniform: times 2^32
    __m256d lowest, times;  // logarithmic: level 1 as a part of the scale, and what makes 2^32 of it
    __m256i exponent;       // that of level 0, in the upper halves
    __m256i s;
} drawing;

static drawing drawing_of(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, uint64_t index) {
    const int s = (int)terse_levels_a_side(o);
    const double unit = o->levels == TERSE_LEVELS_LOGARITHMIC ? 1.0 : 0x1p32;
    return (drawing){
        fields, x, terse_levels_ahead(o), index, terse_packing_avx2_of(terse_field_width(o)), terse_random_of(o->seed, o->step),
        _mm256_set1_pd(terse_stochastic_factor(o, scale) * unit), _mm256_set1_pd(terse_stochastic_most(o) * unit),
        _mm256_castsi256_pd(_mm256_set1_epi64x((long long)(1024 - s) << 52)), _mm256_castsi256_pd(_mm256_set1_epi64x((long long)(1023 + s - 1 + 32) << 52)),
        _mm256_set1_epi64x((long long)(1023 - s) << 32), _mm256_set1_epi8((char)s),
    };
}

static inline __m256d scaled(const drawing *d, const float *x) {
    return _mm256_min_pd(_mm256_mul_pd(_mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_cvtps_pd(_mm_loadu_ps(x))), d->factor), d->most);
}

enum { EXPONENT_OF_WHOLE = 0x43300000 };  // the upper half of 2^52, below which a double's bits count

// Draws one of the two integers around v 2^-32; the result is in the upper half of each lane, above EXPONENT_OF_WHOLE.
static inline __m256i draw(__m256i words, __m256d v) {
    const __m256d one_more = _mm256_add_pd(_mm256_ceil_pd(v), _mm256_set1_pd(0x1p52 + 1));
    return _mm256_add_epi64(_mm256_castpd_si256(one_more), _mm256_andnot_si256(words, _mm256_set1_epi64x(0xfffffffe)));
}

static inline __m256i uniform_4(const drawing *d, const float *x, __m256i words) { return draw(words, scaled(d, x)); }

static inline __m256i logarithmic_4(const drawing *d, const float *x, __m256i words) {
    const __m256d v = scaled(d, x), whole = _mm256_set1_pd(0x1p32), is_low = _mm256_cmp_pd(v, d->lowest, _CMP_LT_OQ);
    const __m256i bits = _mm256_castpd_si256(v), fraction = _mm256_and_si256(bits, _mm256_set1_epi64x(0xfffffffffffff));
    const __m256d mantissa = _mm256_or_pd(_mm256_castsi256_pd(fraction), whole);
    const __m256d p = _mm256_blendv_pd(_mm256_sub_pd(mantissa, whole), _mm256_mul_pd(v, d->times), is_low);
    const __m256i exponent = _mm256_and_si256(_mm256_srli_epi64(bits, 20), _mm256_set1_epi64x(0xfff00000000));
    return _mm256_add_epi64(_mm256_andnot_si256(_mm256_castpd_si256(is_low), _mm256_sub_epi64(exponent, d->exponent)), draw(words, p));
}

static inline __attribute__((always_inline)) __m256i level_8(const drawing *d, size_t i, const __m256i words[2], const terse_levels levels) {
    const float *x = d->x + i;
    const __m256i low = levels == TERSE_LEVELS_LOGARITHMIC ? logarithmic_4(d, x, words[0]) : uniform_4(d, x, words[0]);
    const __m256i high = levels == TERSE_LEVELS_LOGARITHMIC ? logarithmic_4(d, x + 4, words[1]) : uniform_4(d, x + 4, words[1]);
    const __m256 mixed = _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0xDD);  // elements 0 1 4 5, 2 3 6 7
    __m256i magnitude = _mm256_sub_epi32(_mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xD8), _mm256_set1_epi32(EXPONENT_OF_WHOLE));
    const __m256 values = _mm256_loadu_ps(x);
    if (levels == TERSE_LEVELS_WITHOUT_ZERO) {
        const __m256i not_zero = _mm256_castps_si256(_mm256_cmp_ps(values, _mm256_setzero_ps(), _CMP_NEQ_UQ));
        magnitude = _mm256_max_epi32(magnitude, _mm256_srli_epi32(not_zero, 31));
    }
    return _mm256_sign_epi32(magnitude, _mm256_castps_si256(values));  // +0.0 has magnitude 0
}

static inline __attribute__((always_inline)) void draw_round(drawing *d, size_t i, const terse_levels levels) {
    __m256i words[16], half[2];
    terse_random_words_avx2(&d->random, d->index + i, words);
    terse_prefetch(d->x + i + d->ahead);
#pragma GCC unroll 2
    for (size_t k = 0; k < 2; k++) {
        const __m256i *of = words + 8 * k;
        const size_t at = i + 32 * k;
        half[k] = _mm256_add_epi8(terse_bytes_avx2(level_8(d, at, of, levels), level_8(d, at + 8, of + 2, levels),
                                                   level_8(d, at + 16, of + 4, levels), level_8(d, at + 24, of + 6, levels)), d->s);
    }
    terse_pack_64_avx2(&d->packing, d->fields, i, half[0], half[1]);
}

#include "stochastic_vector.h"

void terse_stochastic_avx2(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    walk(fields, x, o, scale, from, to);
}
