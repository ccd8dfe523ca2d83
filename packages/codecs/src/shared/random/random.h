// Random words as a function of (seed, step, element), with no state: Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011).
//
//   key     = (seed's low word, high word)
//   counter = (c's low word, high word, step's low word, high word)       c = 16 (i / 64) + i mod 16
//   element i takes word (i mod 64) / 16 of the four
//
// So 16 counters side by side serve 64 elements in order.
//
// A random number r in [0, 1) is (word >> 1) / 2^31. r < p is computed as (word >> 1) < p 2^31 in fp64, which is exact;
// signed 32-bit lanes suffice.
#ifndef TERSE_RANDOM_H
#define TERSE_RANDOM_H
#include <stdint.h>

enum { TERSE_PHILOX_ROUNDS = 10 };
#define TERSE_PHILOX_M0 0xD2511F53u
#define TERSE_PHILOX_M1 0xCD9E8D57u

// The key of a round, 0 .. 9: its lower word and its upper one.
static inline uint32_t terse_philox_key(uint64_t seed, int round, int upper) {
    return upper ? (uint32_t)(seed >> 32) + (uint32_t)round * 0xBB67AE85u
                 : (uint32_t)seed + (uint32_t)round * 0x9E3779B9u;
}

typedef struct terse_philox_block {
    uint32_t word[4];
} terse_philox_block;

static inline terse_philox_block terse_philox(uint64_t c, uint64_t step, uint64_t seed) {
    uint32_t c0 = (uint32_t)c, c1 = (uint32_t)(c >> 32), c2 = (uint32_t)step, c3 = (uint32_t)(step >> 32);
    for (int round = 0; round < TERSE_PHILOX_ROUNDS; round++) {
        const uint64_t a = (uint64_t)TERSE_PHILOX_M0 * c0, b = (uint64_t)TERSE_PHILOX_M1 * c2;
        const uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ terse_philox_key(seed, round, 0);
        const uint32_t n2 = (uint32_t)(a >> 32) ^ c3 ^ terse_philox_key(seed, round, 1);
        c1 = (uint32_t)b, c3 = (uint32_t)a, c0 = n0, c2 = n2;
    }
    return (terse_philox_block){{c0, c1, c2, c3}};
}

// The constants of vector implementations. Neither step nor the upper word of the counter changes from one element to
// the next, so half of the first two rounds is done once; a and b are the products of the other half:
//
//   a = m0 c's low word,  b = m1 (a's upper word ^ with_a)
//   after both rounds: c0 = b's upper word ^ with_b,  c1 = b's low word,  c2 = a's low word ^ with_low_a,  and c3
typedef struct terse_random {
    uint64_t step, key[TERSE_PHILOX_ROUNDS][2];
    uint64_t with_a, with_b, with_low_a, c3;
    uint32_t upper;  // of the counters that these are for
} terse_random;

static inline void terse_random_start(terse_random *random, uint32_t upper) {
    const uint64_t b = (uint64_t)TERSE_PHILOX_M1 * (uint32_t)random->step;
    const uint64_t a = (uint64_t)TERSE_PHILOX_M0 * ((uint32_t)(b >> 32) ^ upper ^ (uint32_t)random->key[0][0]);
    random->upper = upper;
    random->with_a = random->step >> 32 ^ random->key[0][1];
    random->with_b = (uint32_t)b ^ random->key[1][0];
    random->with_low_a = a >> 32 ^ random->key[1][1];
    random->c3 = (uint32_t)a;
}

static inline terse_random terse_random_of(uint64_t seed, uint64_t step) {
    terse_random random = {.step = step};
    for (int round = 0; round < TERSE_PHILOX_ROUNDS; round++)
        for (int upper = 0; upper < 2; upper++) random.key[round][upper] = terse_philox_key(seed, round, upper);
    terse_random_start(&random, 0);
    return random;
}

// The low word of the first of the 16 counters of elements i .. i + 63, i a multiple of 64: none of the 16 carries.
static inline uint32_t terse_random_first(terse_random *random, uint64_t i) {
    const uint64_t first = i / 64 * 16;
    if (__builtin_expect(first >> 32 != random->upper, 0)) terse_random_start(random, (uint32_t)(first >> 32));
    return (uint32_t)first;
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

#endif
