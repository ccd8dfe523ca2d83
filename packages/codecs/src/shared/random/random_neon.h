// The words of random.h, 64 elements at a time, in NEON: a 32-bit lane holds one word of one counter.
#ifndef TERSE_RANDOM_NEON_H
#define TERSE_RANDOM_NEON_H
#include <arm_neon.h>

#include "random.h"

// The upper words of the products.
static inline uint32x4_t terse_upper_words(uint32x4_t a, uint32_t by) {
    const uint64x2_t low = vmull_n_u32(vget_low_u32(a), by), high = vmull_high_n_u32(a, by);
    return vuzp2q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high));
}

// words[k] = those of elements i + 4 k .. i + 4 k + 3; i is a multiple of 64.
static inline __attribute__((always_inline)) void terse_random_words_neon(terse_random *random, uint64_t i, uint32x4_t words[16]) {
    static const uint32_t lanes[4] = {0, 1, 2, 3};
    const uint32_t m0 = TERSE_PHILOX_M0, m1 = TERSE_PHILOX_M1, first = terse_random_first(random, i);
#pragma GCC unroll 4
    for (int four = 0; four < 4; four++) {  // counters 4 four .. 4 four + 3
        const uint32x4_t counter = vaddq_u32(vdupq_n_u32(first + 4 * (uint32_t)four), vld1q_u32(lanes));
        const uint32x4_t of_b = veorq_u32(terse_upper_words(counter, m0), vdupq_n_u32((uint32_t)random->with_a));
        uint32x4_t c0 = veorq_u32(terse_upper_words(of_b, m1), vdupq_n_u32((uint32_t)random->with_b)), c1 = vmulq_n_u32(of_b, m1);
        uint32x4_t c2 = veorq_u32(vmulq_n_u32(counter, m0), vdupq_n_u32((uint32_t)random->with_low_a)), c3 = vdupq_n_u32((uint32_t)random->c3);
#pragma GCC unroll 8
        for (int round = 2; round < TERSE_PHILOX_ROUNDS; round++) {
            const uint32x4_t n0 = veorq_u32(veorq_u32(terse_upper_words(c2, m1), c1), vdupq_n_u32((uint32_t)random->key[round][0]));
            const uint32x4_t n2 = veorq_u32(veorq_u32(terse_upper_words(c0, m0), c3), vdupq_n_u32((uint32_t)random->key[round][1]));
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
