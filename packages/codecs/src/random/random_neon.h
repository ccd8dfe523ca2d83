// The words of random.h, 64 elements at a time, in NEON: a 32-bit lane holds one word of one counter.
#ifndef TERSE_RANDOM_NEON_H
#define TERSE_RANDOM_NEON_H
#include <arm_neon.h>

#include "random.h"

typedef struct terse_random_neon {
    uint32x4_t key[10][2], step[2];
} terse_random_neon;

static inline terse_random_neon terse_random_neon_of(uint64_t seed, uint64_t step) {
    terse_random_neon random;
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, low += 0x9E3779B9u, high += 0xBB67AE85u) {
        random.key[round][0] = vdupq_n_u32(low);
        random.key[round][1] = vdupq_n_u32(high);
    }
    random.step[0] = vdupq_n_u32((uint32_t)step);
    random.step[1] = vdupq_n_u32((uint32_t)(step >> 32));
    return random;
}

// The upper words of the products.
static inline uint32x4_t terse_upper_words(uint32x4_t a, uint32_t by) {
    const uint64x2_t low = vmull_n_u32(vget_low_u32(a), by), high = vmull_high_n_u32(a, by);
    return vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));
}

// words[k] = those of elements i + 4 k .. i + 4 k + 3; i is a multiple of 64.
static inline __attribute__((always_inline)) void terse_random_words_neon(const terse_random_neon *random, uint64_t i, uint32x4_t words[16]) {
    static const uint32_t lanes[4] = {0, 1, 2, 3};
    const uint32_t m0 = 0xD2511F53u, m1 = 0xCD9E8D57u;
    const uint64_t first = i / 64 * 16;
#pragma GCC unroll 4
    for (int four = 0; four < 4; four++) {  // counters 4 four .. 4 four + 3; first is a multiple of 16, so its low word does not carry
        uint32x4_t c0 = vaddq_u32(vdupq_n_u32((uint32_t)first + 4 * (uint32_t)four), vld1q_u32(lanes)), c1 = vdupq_n_u32((uint32_t)(first >> 32));
        uint32x4_t c2 = random->step[0], c3 = random->step[1];
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++) {
            const uint32x4_t n0 = veorq_u32(veorq_u32(terse_upper_words(c2, m1), c1), random->key[round][0]);
            const uint32x4_t n2 = veorq_u32(veorq_u32(terse_upper_words(c0, m0), c3), random->key[round][1]);
            c1 = vmulq_n_u32(c2, m1);
            c3 = vmulq_n_u32(c0, m0);
            c0 = n0;
            c2 = n2;
        }
        words[four] = c0;
        words[4 + four] = c1;
        words[8 + four] = c2;
        words[12 + four] = c3;
    }
}

#endif
