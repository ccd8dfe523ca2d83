#include "../../shared/random/random_neon.h"
#include "../../shared/signs/signs_neon.h"
#include "terngrad_vector.h"

static inline uint64x2_t below(uint32x2_t draws, float32x2_t magnitude, float64x2_t by) {
    return vcltq_f64(vcvtq_f64_u64(vmovl_u32(draws)), vmulq_f64(vcvt_f64_f32(magnitude), by));
}

static inline uint64_t word_of(const uint32x4_t lanes[16]) { return vget_lane_u64(vreinterpret_u64_u8(terse_packed(lanes)), 0); }

static void draw(uint64_t *no, uint64_t *plus, const float *x, size_t i, size_t words, const terse_codec_options *o, double odds) {
    terse_random random = terse_random_of(o->seed, o->step);
    const float64x2_t by = vdupq_n_f64(odds);
    for (size_t w = 0; w < words; w++) {
        uint32x4_t word[16], drawn[16], positive[16];
        terse_random_words_neon(&random, o->index + i + 64 * w, word);
#pragma GCC unroll 16
        for (int k = 0; k < 16; k++) {
            const float32x4_t value = vld1q_f32(x + 64 * w + 4 * k), magnitude = vabsq_f32(value);
            const uint32x4_t draws = vshrq_n_u32(word[k], 1);
            const uint64x2_t low = below(vget_low_u32(draws), vget_low_f32(magnitude), by);
            const uint64x2_t high = below(vget_high_u32(draws), vget_high_f32(magnitude), by);
            drawn[k] = vcombine_u32(vmovn_u64(low), vmovn_u64(high));
            positive[k] = vandq_u32(drawn[k], vcgtzq_f32(value));
        }
        no[w] = ~word_of(drawn);
        plus[w] = word_of(positive);
    }
}

static void interleave(uint8_t bytes[64], const uint64_t words[8]) {
    const uint8x16_t which = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));  // lane l asks bit l mod 8 of byte l / 8
    for (int part = 0; part < 4; part++) {
        uint8x16_t packed = vdupq_n_u8(0);
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            const uint64_t word = words[k] >> 16 * part;
            const uint8x16_t asked = vcombine_u8(vdup_n_u8((uint8_t)word), vdup_n_u8((uint8_t)(word >> 8)));
            packed = vorrq_u8(packed, vandq_u8(vtstq_u8(asked, which), vdupq_n_u8((uint8_t)(1 << k))));
        }
        vst1q_u8(bytes + 16 * part, packed);
    }
}

static void add(float *sum, const uint8_t *bytes, size_t count, unsigned k, terse_terngrad_table value) {
    const uint8x16_t table = vreinterpretq_u8_f32(vld1q_f32(value.of));
    const int8x8_t shift = vdup_n_s8((int8_t)(-2 * (int)k));
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const uint16x8_t codes = vmovl_u8(vand_u8(vshl_u8(vld1_u8(bytes + i), shift), vdup_n_u8(3)));
        const uint32x4_t halves[2] = {vmovl_u16(vget_low_u16(codes)), vmovl_high_u16(codes)};
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {  // code c takes bytes 4 c .. 4 c + 3 of the table
            const uint32x4_t places = vmlaq_n_u32(vdupq_n_u32(0x03020100), halves[half], 0x04040404);
            const float32x4_t values = vreinterpretq_f32_u8(vqtbl1q_u8(table, vreinterpretq_u8_u32(places)));
            vst1q_f32(sum + i + 4 * half, vaddq_f32(vld1q_f32(sum + i + 4 * half), values));
        }
    }
    for (; i < count; i++) sum[i] += value.of[bytes[i] >> 2 * k & 3];
}

TERSE_TERNGRAD(neon)
