// The words of random.h, 64 elements at a time, in the words of terse/vector.h, which a file includes before this one.
//
// A 64-bit lane holds one word of one counter. No product reads its upper half, which may have any value.
#ifndef TERSE_RANDOM_VECTOR_H
#define TERSE_RANDOM_VECTOR_H
#include "random.h"

enum { TERSE_COUNTERS = LANES / 2, TERSE_COUNTER_VECTORS = 16 / TERSE_COUNTERS };  // in a vector; vectors of 16

static inline longs terse_first_counters(void) {
    longs counters;
    for (int lane = 0; lane < TERSE_COUNTERS; lane++) counters[lane] = (uint64_t)lane;
    return counters;
}

// words[k] = those of elements i + LANES / 2 k .. i + LANES / 2 (k + 1) - 1, in the lower halves of the lanes; i is a
// multiple of 64.
static inline __attribute__((always_inline)) void terse_vector_random_words(terse_random *random, uint64_t i,
                                                                            longs words[2 * VECTORS]) {
    const uint32_t first = terse_random_first(random, i);
#pragma GCC unroll 4
    for (size_t pair = 0; pair < TERSE_COUNTER_VECTORS; pair += 2) {  // two vectors side by side
        longs c[2][4];
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; v++) {
            const longs counter = terse_first_counters() + (first + TERSE_COUNTERS * (pair + v));
            const longs a = MULTIPLY(counter, TERSE_PHILOX_M0), b = MULTIPLY(a >> 32 ^ random->with_a, TERSE_PHILOX_M1);
            c[v][0] = b >> 32 ^ random->with_b;
            c[v][1] = b;
            c[v][2] = a ^ random->with_low_a;
            c[v][3] = (longs){0} + random->c3;
        }
#pragma GCC unroll 8
        for (int round = 2; round < TERSE_PHILOX_ROUNDS; round++)
#pragma GCC unroll 2
            for (size_t v = 0; v < 2; v++) {
                const longs a = MULTIPLY(c[v][0], TERSE_PHILOX_M0), b = MULTIPLY(c[v][2], TERSE_PHILOX_M1);
                c[v][0] = b >> 32 ^ c[v][1] ^ random->key[round][0];
                c[v][2] = a >> 32 ^ c[v][3] ^ random->key[round][1];
                c[v][1] = b;
                c[v][3] = a;
            }
#pragma GCC unroll 4
        for (size_t word = 0; word < 4; word++)
#pragma GCC unroll 2
            for (size_t v = 0; v < 2; v++) words[TERSE_COUNTER_VECTORS * word + pair + v] = c[v][word];
    }
}

#endif
