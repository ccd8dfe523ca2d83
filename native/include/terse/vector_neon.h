// NEON's words: terse/vector.h says what they mean.
#ifndef TERSE_VECTOR_NEON_H
#define TERSE_VECTOR_NEON_H
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INSTRUCTIONS neon
enum { LANES = 4 };

typedef float32x4_t vec;
#define LOAD vld1q_f32
#define STORE vst1q_f32
#define SPLAT vdupq_n_f32
#define ABS vabsq_f32
#define SQRT vsqrtq_f32
#define FMA(a, b, sum) vfmaq_f32(sum, a, b)
#define LIMIT(x, most) vminq_f32(vmaxq_f32(x, -(most)), most)
#define LOAD_F16(from) vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)))
#define STORE_F16(to, x) vst1_u8(to, vreinterpret_u8_f16(vcvt_f16_f32(x)))
#define TABLE vld1q_f32

typedef int32x4_t ints;
// Float c of a table takes its bytes 4 c .. 4 c + 3.
#define LOOK_UP(table, which) \
    ((vec)vqtbl1q_u8((uint8x16_t)(table), (uint8x16_t)(((which) & 3) * 0x04040404 + 0x03020100)))
typedef struct eight_floats {
    uint8x16x2_t bytes;
} eight_floats;
#define EIGHT_FLOATS(eight) ((eight_floats){{{(uint8x16_t)vld1q_f32(eight), (uint8x16_t)vld1q_f32((eight) + 4)}}})
#define LOOK_UP_8(eight, which) ((vec)vqtbl2q_u8((eight).bytes, (uint8x16_t)(((which) & 7) * 0x04040404 + 0x03020100)))
#define SPLAT_INTS(value) vdupq_n_s32(value)
#define MOST_INTS vmaxq_s32
#define LEAST_INTS vminq_s32
#define LARGEST_INT vmaxvq_s32
#define ROUND vcvtnq_s32_f32
static inline ints LOAD_INT8(const uint8_t *from) {
    uint32_t four;
    memcpy(&four, from, 4);
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)))));
}
static inline void STORE_INT8(uint8_t *to, ints x) {
    const int16x4_t words = vmovn_s32(x);
    const uint32_t four = vget_lane_u32(vreinterpret_u32_s8(vmovn_s16(vcombine_s16(words, words))), 0);
    memcpy(to, &four, 4);
}
#define LOAD_UINT16(from) ((ints)vmovl_u16(vreinterpret_u16_u8(vld1_u8(from))))
#define STORE_UINT16(to, x) vst1_u8(to, vreinterpret_u8_u16(vmovn_u32((uint32x4_t)(x))))
#define ANY(x) (vmaxvq_u32((uint32x4_t)(x)) != 0)

typedef uint32x4_t mask;
#define ABOVE vcgtq_f32
#define NOT_BELOW vcgeq_f32
#define EQUAL vceqq_f32
#define INTS_ABOVE vcgtq_s32
#define BUT_NOT vbicq_u32
#define COUNT(m, x) ((x) - (ints)(m))
#define CHOOSE vbslq_f32
#define ADD_WHERE(m, a, b) CHOOSE(m, (a) + (b), a)

// 16 lanes, as bytes that hold the one bit which is theirs.
static inline __attribute__((always_inline)) uint8x16_t terse_weighted(const mask lanes[4]) {
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t low = vcombine_u16(vmovn_u32(lanes[0]), vmovn_u32(lanes[1]));
    const uint16x8_t high = vcombine_u16(vmovn_u32(lanes[2]), vmovn_u32(lanes[3]));
    return vandq_u8(vcombine_u8(vmovn_u16(low), vmovn_u16(high)), vld1q_u8(weights));
}

// Neighbours are added three times.
static inline __attribute__((always_inline)) uint64_t WORD(const mask lanes[16]) {
    const uint8x16_t first = vpaddq_u8(terse_weighted(lanes), terse_weighted(lanes + 4));
    const uint8x16_t second = vpaddq_u8(terse_weighted(lanes + 8), terse_weighted(lanes + 12));
    const uint8x16_t both = vpaddq_u8(first, second);
    return vget_lane_u64(vreinterpret_u64_u8(vget_low_u8(vpaddq_u8(both, both))), 0);
}

static inline __attribute__((always_inline)) mask LANES_OF(uint64_t word, size_t k) {
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vtstq_u32(vdupq_n_u32((uint32_t)(word >> 4 * k)), vld1q_u32(bits));
}

typedef float64x2_t wide;
#define SPLAT_WIDE vdupq_n_f64
#define LOAD_WIDE(from) vcvt_f64_f32(vld1_f32(from))
#define STORE_WIDE vst1q_f64
#define WIDE_ABS vabsq_f64
#define WIDE_LIMIT(x, most) vminq_f64(vabsq_f64(x), most)
#define LOWER(x) vcvt_f64_f32(vget_low_f32(x))
#define UPPER vcvt_high_f64_f32
#define LOWER_INTS(x) vcvtq_f64_s64(vmovl_s32(vget_low_s32(x)))
#define UPPER_INTS(x) vcvtq_f64_s64(vmovl_high_s32(x))
#define NARROW(lower, upper) vcvt_high_f32_f64(vcvt_f32_f64(lower), upper)
#define ROUND_WIDE(lower, upper) vcombine_s32(vmovn_s64(vcvtnq_s64_f64(lower)), vmovn_s64(vcvtnq_s64_f64(upper)))
#define TRUNCATE_WIDE(lower, upper) vcombine_s32(vmovn_s64(vcvtq_s64_f64(lower)), vmovn_s64(vcvtq_s64_f64(upper)))

typedef uint64x2_t wide_mask;
#define WIDE_BELOW vcltq_f64
#define WIDE_CHOOSE vbslq_f64
#define WIDE_ABOVE(a, b, lower, upper) ((mask)LOWER_BITS(vcgtq_f64(a, lower), vcgtq_f64(b, upper)))
#define LOWER_BITS(lower, upper) vuzp1q_s32((ints)(lower), (ints)(upper))
#define UPPER_BITS(lower, upper) vuzp2q_s32((ints)(lower), (ints)(upper))
typedef uint64x2_t longs;
#define CEIL vcvtpq_u64_f64
#define MULTIPLY(a, by) vmull_n_u32(vmovn_u64(a), by)

typedef struct bytes {
    uint8x16_t quarter[4];
} bytes;
static inline uint8x16_t terse_16_bytes(const ints x[4]) {
    const int16x8_t low = vcombine_s16(vmovn_s32(x[0]), vmovn_s32(x[1])),
                    high = vcombine_s16(vmovn_s32(x[2]), vmovn_s32(x[3]));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
#define BYTES(x) \
    ((bytes){{terse_16_bytes(x), terse_16_bytes((x) + 4), terse_16_bytes((x) + 8), terse_16_bytes((x) + 12)}})
static inline bytes ADD_BYTES(bytes x, unsigned byte) {
    for (int part = 0; part < 4; part++) x.quarter[part] = vaddq_u8(x.quarter[part], vdupq_n_u8((uint8_t)byte));
    return x;
}
static inline __attribute__((always_inline)) bytes OR_WHERE(bytes x, uint64_t word, unsigned byte) {
    const uint8x16_t which = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));  // lane l asks bit l mod 8
#pragma GCC unroll 4
    for (int part = 0; part < 4; part++) {
        const uint8x16_t asked = vcombine_u8(vdup_n_u8((uint8_t)(word >> 16 * part)),
                                             vdup_n_u8((uint8_t)(word >> (16 * part + 8))));
        x.quarter[part] = vorrq_u8(x.quarter[part], vandq_u8(vtstq_u8(asked, which), vdupq_n_u8((uint8_t)byte)));
    }
    return x;
}
static inline bytes LIMIT_BYTES(bytes x, unsigned most) {
    for (int part = 0; part < 4; part++)
        x.quarter[part] = (uint8x16_t)vmaxq_s8(vminq_s8((int8x16_t)x.quarter[part], vdupq_n_s8((int8_t)most)),
                                               vdupq_n_s8((int8_t)-(int)most));
    return x;
}
static inline void STORE_BYTES(uint8_t *to, bytes x) {
    for (int part = 0; part < 4; part++) vst1q_u8(to + 16 * part, x.quarter[part]);
}

#include "vector.h"

#endif
