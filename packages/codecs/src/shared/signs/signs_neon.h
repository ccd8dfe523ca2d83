// Packed signs in NEON: 64 comparisons to 8 bytes, and bytes back to lanes. Internal to the codecs, no part of the ABI.
#ifndef TERSE_SIGNS_NEON_H
#define TERSE_SIGNS_NEON_H
#include <arm_neon.h>
#include <string.h>

// 16 lanes, each all ones or all zeros, as bytes that hold the one bit which is theirs.
static inline __attribute__((always_inline)) uint8x16_t terse_weighted(const uint32x4_t lanes[4]) {
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t low = vcombine_u16(vmovn_u32(lanes[0]), vmovn_u32(lanes[1]));
    const uint16x8_t high = vcombine_u16(vmovn_u32(lanes[2]), vmovn_u32(lanes[3]));
    return vandq_u8(vcombine_u8(vmovn_u16(low), vmovn_u16(high)), vld1q_u8(weights));
}

// 64 lanes -> 8 bytes, bit i = lane i: neighbours are added three times.
static inline __attribute__((always_inline)) uint8x8_t terse_packed(const uint32x4_t lanes[16]) {
    const uint8x16_t first = vpaddq_u8(terse_weighted(lanes), terse_weighted(lanes + 4));
    const uint8x16_t second = vpaddq_u8(terse_weighted(lanes + 8), terse_weighted(lanes + 12));
    const uint8x16_t both = vpaddq_u8(first, second);
    return vget_low_u8(vpaddq_u8(both, both));
}

static inline uint64_t terse_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

// Bits 4 k .. 4 k + 3 of a word, each as a lane of all ones or all zeros.
static inline __attribute__((always_inline)) uint32x4_t terse_unpacked(uint64_t word, int k) {
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vtstq_u32(vdupq_n_u32((uint32_t)(word >> 4 * k)), vld1q_u32(bits));
}

#endif
