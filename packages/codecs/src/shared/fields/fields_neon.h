// Fields in NEON: 64 of them at a time from bytes, and 4 of them at a time to whole numbers.
#ifndef TERSE_FIELDS_NEON_H
#define TERSE_FIELDS_NEON_H
#include "terse/vector_neon.h"

#include "fields.h"
#include "field_groups.h"

typedef struct terse_packing {
    unsigned width;
    int16x8_t pairs;  // shifts that put two neighbours side by side
    int32x4_t fours;  // and two pairs
    int64x2_t eights;
} terse_packing;

static inline terse_packing terse_packing_of(unsigned width) {
    const int narrow = width < 8 ? (int)width : 7;
    return (terse_packing){width, vdupq_n_s16((int16_t)narrow), vdupq_n_s32(2 * narrow), vdupq_n_s64(4 * narrow)};
}

// 16 values, to two groups of 8 * width bits.
static inline uint64x2_t terse_groups(const terse_packing *p, uint8x16_t x) {
    const uint16x8_t ones = vreinterpretq_u16_u8(x);
    const uint16x8_t pairs = vorrq_u16(vandq_u16(ones, vdupq_n_u16(0xff)), vshlq_u16(vshrq_n_u16(ones, 8), p->pairs));
    const uint32x4_t twos = vreinterpretq_u32_u16(pairs);
    const uint32x4_t fours = vorrq_u32(vandq_u32(twos, vdupq_n_u32(0xffff)),
                                       vshlq_u32(vshrq_n_u32(twos, 16), p->fours));
    const uint64x2_t both = vreinterpretq_u64_u32(fours);
    return vorrq_u64(vandq_u64(both, vdupq_n_u64(0xffffffff)), vshlq_u64(vshrq_n_u64(both, 32), p->eights));
}

// x: 64 values, each less than 2^width; i, a multiple of 8, is the first one's index.
static inline __attribute__((always_inline)) void terse_pack_64(const terse_packing *p, uint8_t *fields, size_t i,
                                                                bytes x) {
    uint8_t *to = fields + i / 8 * p->width;
    if (p->width == 8) {
        STORE_BYTES(to, x);
    } else if (p->width == 16) {
        const uint8x16_t zero = vdupq_n_u8(0);
        for (int k = 0; k < 4; k++)
            vst1q_u8(to + 32 * k, vzip1q_u8(x.quarter[k], zero)),
                vst1q_u8(to + 32 * k + 16, vzip2q_u8(x.quarter[k], zero));
    } else {
        uint64_t groups[8];
        for (int k = 0; k < 4; k++) vst1q_u64(groups + 2 * k, terse_groups(p, x.quarter[k]));
        terse_join_groups(to, groups, p->width);
    }
}

typedef struct terse_unpacking {
    size_t width;
    uint8x16_t place[2];  // of 4 fields each: their bytes,
    int32x4_t shift[2];   // where they begin in them,
    uint32x4_t mask;      // and what is theirs
} terse_unpacking;

enum { TERSE_READ_BYTES = 16, TERSE_READ_FIELDS = 8 };  // at a time

static inline terse_unpacking terse_unpacking_of(unsigned width) {
    terse_unpacking u = {.width = width, .mask = vdupq_n_u32((1u << width) - 1)};
    static const uint32_t numbers[2][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}};
    for (int half = 0; half < 2; half++) {
        const uint32x4_t bit = vmulq_n_u32(vld1q_u32(numbers[half]), width), byte = vshrq_n_u32(bit, 3);
        const uint32x4_t next = vshlq_n_u32(vaddq_u32(byte, vdupq_n_u32(1)), 8), nothing = vdupq_n_u32(0xffff0000);
        u.place[half] = vreinterpretq_u8_u32(vorrq_u32(vorrq_u32(byte, next), nothing));
        u.shift[half] = vnegq_s32(vreinterpretq_s32_u32(vandq_u32(bit, vdupq_n_u32(7))));
    }
    return u;
}

// Fields i + LANES k .. i + LANES (k + 1) - 1, i a multiple of 8.
static inline __attribute__((always_inline)) ints terse_unpacked(const terse_unpacking *u, const uint8_t *fields,
                                                                 size_t i, size_t k) {
    const uint8x16_t read = vld1q_u8(fields + (i + LANES * k) / 8 * u->width);
    const uint32x4_t placed = vshlq_u32(vreinterpretq_u32_u8(vqtbl1q_u8(read, u->place[k % 2])), u->shift[k % 2]);
    return (ints)vandq_u32(placed, u->mask);
}

#endif
