// 64 fields at a time, from bytes, in NEON.
#ifndef TERSE_FIELDS_NEON_H
#define TERSE_FIELDS_NEON_H
#include <arm_neon.h>

#include "fields.h"
#include "field_groups.h"

typedef struct terse_packing_neon {
    unsigned width;
    int16x8_t pairs;  // shifts that put two neighbours side by side
    int32x4_t fours;  // and two pairs
    int64x2_t eights;
} terse_packing_neon;

static inline terse_packing_neon terse_packing_neon_of(unsigned width) {
    const int narrow = width < 8 ? (int)width : 7;
    return (terse_packing_neon){width, vdupq_n_s16((int16_t)narrow), vdupq_n_s32(2 * narrow), vdupq_n_s64(4 * narrow)};
}

// 16 values, to two groups of 8 * width bits.
static inline uint64x2_t terse_groups_neon(const terse_packing_neon *p, uint8x16_t x) {
    const uint16x8_t ones = vreinterpretq_u16_u8(x);
    const uint16x8_t pairs = vorrq_u16(vandq_u16(ones, vdupq_n_u16(0xff)), vshlq_u16(vshrq_n_u16(ones, 8), p->pairs));
    const uint32x4_t twos = vreinterpretq_u32_u16(pairs);
    const uint32x4_t fours = vorrq_u32(vandq_u32(twos, vdupq_n_u32(0xffff)), vshlq_u32(vshrq_n_u32(twos, 16), p->fours));
    const uint64x2_t both = vreinterpretq_u64_u32(fours);
    return vorrq_u64(vandq_u64(both, vdupq_n_u64(0xffffffff)), vshlq_u64(vshrq_n_u64(both, 32), p->eights));
}

// x: 64 values, each less than 2^width; i, a multiple of 8, is the first one's index.
static inline __attribute__((always_inline)) void terse_pack_64_neon(const terse_packing_neon *p, uint8_t *fields, size_t i, const uint8x16_t x[4]) {
    uint8_t *to = fields + i / 8 * p->width;
    if (p->width == 8) {
        for (int k = 0; k < 4; k++) vst1q_u8(to + 16 * k, x[k]);
    } else if (p->width == 16) {
        const uint8x16_t zero = vdupq_n_u8(0);
        for (int k = 0; k < 4; k++) vst1q_u8(to + 32 * k, vzip1q_u8(x[k], zero)), vst1q_u8(to + 32 * k + 16, vzip2q_u8(x[k], zero));
    } else {
        uint64_t groups[8];
        for (int k = 0; k < 4; k++) vst1q_u64(groups + 2 * k, terse_groups_neon(p, x[k]));
        switch (p->width) {
            case 2: terse_join_groups(to, groups, 2); break;
            case 3: terse_join_groups(to, groups, 3); break;
            case 4: terse_join_groups(to, groups, 4); break;
            case 5: terse_join_groups(to, groups, 5); break;
            case 6: terse_join_groups(to, groups, 6); break;
            default: terse_join_groups(to, groups, 7);
        }
    }
}

// The lowest bytes of four times four 32-bit numbers, in order.
static inline uint8x16_t terse_bytes_neon(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
    const int16x8_t low = vcombine_s16(vmovn_s32(a), vmovn_s32(b)), high = vcombine_s16(vmovn_s32(c), vmovn_s32(d));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

#endif
