#include "../random/random_neon.h"
#include "../fields/fields_neon.h"
#include "stochastic.h"

typedef struct drawing {
    uint8_t *fields;
    const float *x;
    uint64_t index;
    terse_packing_neon packing;
    terse_random random;
    float64x2_t factor, most;   // uniform: times 2^32
    float64x2_t lowest, times;  // logarithmic: level 1 as a part of the scale, and what makes 2^32 of it
    uint64x2_t exponent;        // that of level 0
    uint8x16_t s;
} drawing;

static drawing drawing_of(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, uint64_t index) {
    const unsigned s = terse_levels_a_side(o);
    const double unit = o->levels == TERSE_LEVELS_LOGARITHMIC ? 1.0 : 0x1p32;
    return (drawing){
        fields, x, index, terse_packing_neon_of(terse_field_width(o)), terse_random_of(o->seed, o->step),
        vdupq_n_f64(terse_stochastic_factor(o, scale) * unit), vdupq_n_f64(terse_stochastic_most(o) * unit),
        vreinterpretq_f64_u64(vdupq_n_u64((uint64_t)(1024 - s) << 52)), vreinterpretq_f64_u64(vdupq_n_u64((uint64_t)(1023 + s - 1 + 32) << 52)),
        vdupq_n_u64(1023 - s), vdupq_n_u8((uint8_t)s),
    };
}

static inline float64x2_t scaled(const drawing *d, float32x2_t x) {
    return vminq_f64(vmulq_f64(vabsq_f64(vcvt_f64_f32(x)), d->factor), d->most);
}

// One of the whole numbers around v 2^-32.
static inline uint32x2_t draw(uint32x2_t words, float64x2_t v) {
    const uint32x2_t left = vorr_u32(vmvn_u32(words), vdup_n_u32(1));
    return vshrn_n_u64(vaddw_u32(vcvtpq_u64_f64(v), left), 32);
}

static inline uint32x2_t uniform_2(const drawing *d, float32x2_t x, uint32x2_t words) { return draw(words, scaled(d, x)); }

static inline uint32x2_t logarithmic_2(const drawing *d, float32x2_t x, uint32x2_t words) {
    const float64x2_t v = scaled(d, x), whole = vdupq_n_f64(0x1p32);
    const uint64x2_t bits = vreinterpretq_u64_f64(v), is_low = vcltq_f64(v, d->lowest);
    const uint64x2_t mantissa = vorrq_u64(vandq_u64(bits, vdupq_n_u64(0xfffffffffffff)), vreinterpretq_u64_f64(whole));
    const float64x2_t p = vbslq_f64(is_low, vmulq_f64(v, d->times), vsubq_f64(vreinterpretq_f64_u64(mantissa), whole));
    const uint64x2_t k = vbicq_u64(vsubq_u64(vshrq_n_u64(bits, 52), d->exponent), is_low);
    return vadd_u32(vmovn_u64(k), draw(words, p));
}

static inline __attribute__((always_inline)) int32x4_t level_4(const drawing *d, size_t i, uint32x4_t words, const terse_levels levels) {
    const float32x4_t x = vld1q_f32(d->x + i);
    const uint32x2_t low_words = vget_low_u32(words), high_words = vget_high_u32(words);
    uint32x4_t magnitude = levels == TERSE_LEVELS_LOGARITHMIC
        ? vcombine_u32(logarithmic_2(d, vget_low_f32(x), low_words), logarithmic_2(d, vget_high_f32(x), high_words))
        : vcombine_u32(uniform_2(d, vget_low_f32(x), low_words), uniform_2(d, vget_high_f32(x), high_words));
    if (levels == TERSE_LEVELS_WITHOUT_ZERO) {
        const uint32x4_t not_zero = vmvnq_u32(vceqzq_f32(x));
        magnitude = vmaxq_u32(magnitude, vshrq_n_u32(not_zero, 31));
    }
    const uint32x4_t minus = vcltzq_f32(x);
    return vreinterpretq_s32_u32(vsubq_u32(veorq_u32(magnitude, minus), minus));
}

static inline __attribute__((always_inline)) void draw_round(drawing *d, size_t i, const terse_levels levels) {
    uint32x4_t words[16];
    uint8x16_t fields[4];
    terse_random_words_neon(&d->random, d->index + i, words);
    for (size_t k = 0; k < 4; k++) {
        const size_t at = i + 16 * k;
        fields[k] = vaddq_u8(terse_bytes_neon(level_4(d, at, words[4 * k], levels), level_4(d, at + 4, words[4 * k + 1], levels),
                                              level_4(d, at + 8, words[4 * k + 2], levels), level_4(d, at + 12, words[4 * k + 3], levels)), d->s);
    }
    terse_pack_64_neon(&d->packing, d->fields, i, fields);
}

#include "stochastic_vector.h"

void terse_stochastic_neon(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    walk(fields, x, o, scale, from, to);
}
