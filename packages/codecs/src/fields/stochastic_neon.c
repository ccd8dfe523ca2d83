#include "../random/random_neon.h"
#include "fields_neon.h"
#include "stochastic.h"
#include "terse/walk.h"

typedef struct drawing {
    uint8_t *fields;
    const float *x;
    uint64_t index;
    terse_packing_neon packing;
    terse_random_neon random;
    float64x2_t factor, most, lowest;  // lowest: logarithmic, level 1; as a part of the scale
    uint64x2_t exponent;               // and that of level 0
    uint8x16_t s;
} drawing;

static inline float64x2_t scaled(const drawing *d, float32x2_t x) {
    return vminq_f64(vmulq_f64(vabsq_f64(vcvt_f64_f32(x)), d->factor), d->most);
}

// All ones, which is -1, in the lanes where the draw falls below p.
static inline uint64x2_t draw(uint32x2_t words, float64x2_t p) {
    const float64x2_t r = vcvtq_f64_u64(vmovl_u32(vshr_n_u32(words, 1)));
    return vcltq_f64(r, vmulq_f64(p, vdupq_n_f64(0x1p31)));
}

static inline uint32x2_t uniform_2(const drawing *d, float32x2_t x, uint32x2_t words) {
    const float64x2_t v = scaled(d, x), below = vrndmq_f64(v);
    return vmovn_u64(vsubq_u64(vcvtq_u64_f64(below), draw(words, vsubq_f64(v, below))));
}

static inline uint32x2_t logarithmic_2(const drawing *d, float32x2_t x, uint32x2_t words) {
    const float64x2_t v = scaled(d, x), one = vdupq_n_f64(1.0);
    const uint64x2_t bits = vreinterpretq_u64_f64(v), is_low = vcltq_f64(v, d->lowest);
    const uint64x2_t mantissa = vorrq_u64(vandq_u64(bits, vdupq_n_u64(0xfffffffffffff)), vreinterpretq_u64_f64(one));
    const float64x2_t p = vbslq_f64(is_low, vdivq_f64(v, d->lowest), vsubq_f64(vreinterpretq_f64_u64(mantissa), one));
    const uint64x2_t k = vbicq_u64(vsubq_u64(vshrq_n_u64(bits, 52), d->exponent), is_low);
    return vmovn_u64(vsubq_u64(k, draw(words, p)));
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

static inline __attribute__((always_inline)) void draw_round(const drawing *d, size_t i, const terse_levels levels) {
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

TERSE_ROUND_FUNCTION uniform_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_UNIFORM); }
TERSE_ROUND_FUNCTION without_zero_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_WITHOUT_ZERO); }
TERSE_ROUND_FUNCTION logarithmic_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_LOGARITHMIC); }

void terse_stochastic_neon(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 63) / 64 * 64;  // where draws begin
    size_t done = from;
    if (first + 64 <= to) {
        terse_stochastic_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o), width = terse_field_width(o);
        drawing d = {
            fields + first / 8 * width, x + first, o->index + first, terse_packing_neon_of(width), terse_random_neon_of(o->seed, o->step),
            vdupq_n_f64(terse_stochastic_factor(o, scale)), vdupq_n_f64(terse_stochastic_most(o)),
            vreinterpretq_f64_u64(vdupq_n_u64((uint64_t)(1024 - s) << 52)), vdupq_n_u64(1023 - s), vdupq_n_u8((uint8_t)s),
        };
        done = first + (o->levels == TERSE_LEVELS_UNIFORM       ? terse_walk(to - first, uniform_round, &d)
                        : o->levels == TERSE_LEVELS_LOGARITHMIC ? terse_walk(to - first, logarithmic_round, &d)
                                                                : terse_walk(to - first, without_zero_round, &d));
    }
    terse_stochastic_scalar(fields, x, o, scale, done, to);
}
