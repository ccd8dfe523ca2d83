// Random words as a function of (seed, step, element), with no state: Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011).
//
//   key     = (seed's low word, high word)
//   counter = (c's low word, high word, step's low word, high word)       c = 16 (i / 64) + i mod 16
//   element i takes word (i mod 64) / 16 of the four                      so 16 counters side by side serve 64 elements in order
//
// A number r in [0, 1) is (word >> 1) / 2^31, and "r < p" is asked as (word >> 1) < p 2^31 in fp64: exact, and signed 32-bit lanes do.
#ifndef TERSE_RANDOM_H
#define TERSE_RANDOM_H
#include <stdint.h>

typedef struct terse_philox_block { uint32_t word[4]; } terse_philox_block;

static inline terse_philox_block terse_philox(uint64_t c, uint64_t step, uint64_t seed) {
    uint32_t c0 = (uint32_t)c, c1 = (uint32_t)(c >> 32), c2 = (uint32_t)step, c3 = (uint32_t)(step >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b, c3 = (uint32_t)a, c0 = n0, c2 = n2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return (terse_philox_block){{c0, c1, c2, c3}};
}

static inline uint32_t terse_random_word(uint64_t seed, uint64_t step, uint64_t i) {
    return terse_philox(i / 64 * 16 + i % 16, step, seed).word[i % 64 / 16];
}

// The words of elements i .. i + 63, i a multiple of 64.
static inline void terse_random_words(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]) {
    for (unsigned c = 0; c < 16; c++) {
        const terse_philox_block block = terse_philox(i / 64 * 16 + c, step, seed);
        for (unsigned w = 0; w < 4; w++) words[16 * w + c] = block.word[w];
    }
}

// True with probability p, 0 <= p <= 1.
static inline int terse_random_below(uint64_t seed, uint64_t step, uint64_t i, double p) {
    return (double)(terse_random_word(seed, step, i) >> 1) < p * 0x1p31;
}

#endif
