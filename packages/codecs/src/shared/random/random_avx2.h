// The words of random.h, 64 elements at a time, in AVX2.
//
// A 64-bit lane holds one word of one counter. No product reads its upper half, which may have any value.
#ifndef TERSE_RANDOM_AVX2_H
#define TERSE_RANDOM_AVX2_H
#include <immintrin.h>

#include "random.h"

// words[k] = those of elements i + 4 k .. i + 4 k + 3, in the lower halves of the lanes; i is a multiple of 64.
static inline __attribute__((always_inline)) void terse_random_words_avx2(terse_random *random, uint64_t i, __m256i words[16]) {
    const __m256i m0 = _mm256_set1_epi64x(TERSE_PHILOX_M0), m1 = _mm256_set1_epi64x(TERSE_PHILOX_M1);
    const uint32_t first = terse_random_first(random, i);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {  // counters 8 half .. 8 half + 7, two fours side by side
        __m256i c[2][4];
#pragma GCC unroll 2
        for (int four = 0; four < 2; four++) {
            const __m256i counter = _mm256_add_epi64(_mm256_set1_epi64x(first), _mm256_add_epi64(_mm256_setr_epi64x(0, 1, 2, 3), _mm256_set1_epi64x(8 * half + 4 * four)));
            const __m256i a = _mm256_mul_epu32(counter, m0);
            const __m256i b = _mm256_mul_epu32(_mm256_xor_si256(_mm256_srli_epi64(a, 32), _mm256_set1_epi64x((long long)random->with_a)), m1);
            c[four][0] = _mm256_xor_si256(_mm256_srli_epi64(b, 32), _mm256_set1_epi64x((long long)random->with_b));
            c[four][1] = b;
            c[four][2] = _mm256_xor_si256(a, _mm256_set1_epi64x((long long)random->with_low_a));
            c[four][3] = _mm256_set1_epi64x((long long)random->c3);
        }
#pragma GCC unroll 8
        for (int round = 2; round < TERSE_PHILOX_ROUNDS; round++) {
#pragma GCC unroll 2
            for (int four = 0; four < 2; four++) {
                const __m256i a = _mm256_mul_epu32(c[four][0], m0), b = _mm256_mul_epu32(c[four][2], m1);
                c[four][0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), c[four][1]), _mm256_set1_epi64x((long long)random->key[round][0]));
                c[four][2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), c[four][3]), _mm256_set1_epi64x((long long)random->key[round][1]));
                c[four][1] = b;
                c[four][3] = a;
            }
        }
#pragma GCC unroll 4
        for (int word = 0; word < 4; word++) words[4 * word + 2 * half] = c[0][word], words[4 * word + 2 * half + 1] = c[1][word];
    }
}

#endif
