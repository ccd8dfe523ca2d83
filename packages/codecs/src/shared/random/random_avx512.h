// The words of random.h, 64 elements at a time, in AVX-512.
//
// A 64-bit lane holds one word of one counter. No product reads its upper half, which may have any value.
#ifndef TERSE_RANDOM_AVX512_H
#define TERSE_RANDOM_AVX512_H
#include <immintrin.h>

#include "random.h"

// words[k] = those of elements i + 8 k .. i + 8 k + 7, in the lower halves of the lanes; i is a multiple of 64.
static inline __attribute__((always_inline)) void terse_random_words_avx512(terse_random *random, uint64_t i, __m512i words[8]) {
    enum { XOR_OF_THREE = 0x96 };
    const __m512i m0 = _mm512_set1_epi64(TERSE_PHILOX_M0), m1 = _mm512_set1_epi64(TERSE_PHILOX_M1);
    const uint32_t first = terse_random_first(random, i);
    __m512i c[2][4];  // the 8 lower counters, and the 8 upper ones
#pragma GCC unroll 2
    for (int upper = 0; upper < 2; upper++) {
        const __m512i counter = _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(8 * upper)));
        const __m512i a = _mm512_mul_epu32(counter, m0);
        const __m512i b = _mm512_mul_epu32(_mm512_xor_si512(_mm512_srli_epi64(a, 32), _mm512_set1_epi64((long long)random->with_a)), m1);
        c[upper][0] = _mm512_xor_si512(_mm512_srli_epi64(b, 32), _mm512_set1_epi64((long long)random->with_b));
        c[upper][1] = b;
        c[upper][2] = _mm512_xor_si512(a, _mm512_set1_epi64((long long)random->with_low_a));
        c[upper][3] = _mm512_set1_epi64((long long)random->c3);
    }
#pragma GCC unroll 8
    for (int round = 2; round < TERSE_PHILOX_ROUNDS; round++) {
#pragma GCC unroll 2
        for (int upper = 0; upper < 2; upper++) {
            const __m512i a = _mm512_mul_epu32(c[upper][0], m0), b = _mm512_mul_epu32(c[upper][2], m1);
            c[upper][0] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(b, 32), c[upper][1], _mm512_set1_epi64((long long)random->key[round][0]), XOR_OF_THREE);
            c[upper][2] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(a, 32), c[upper][3], _mm512_set1_epi64((long long)random->key[round][1]), XOR_OF_THREE);
            c[upper][1] = b;
            c[upper][3] = a;
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) words[k] = c[k % 2][k / 2];
}

#endif
