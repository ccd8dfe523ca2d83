// The words of random.h, 64 elements at a time, in AVX2.
//
// A 64-bit lane holds one word of one counter; its upper half is whatever the products leave there, which no product reads.
#ifndef TERSE_RANDOM_AVX2_H
#define TERSE_RANDOM_AVX2_H
#include <immintrin.h>

#include "random.h"

typedef struct terse_random_avx2 {
    __m256i key[10][2], step[2];
} terse_random_avx2;

static inline terse_random_avx2 terse_random_avx2_of(uint64_t seed, uint64_t step) {
    terse_random_avx2 random;
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, low += 0x9E3779B9u, high += 0xBB67AE85u) {
        random.key[round][0] = _mm256_set1_epi64x(low);
        random.key[round][1] = _mm256_set1_epi64x(high);
    }
    random.step[0] = _mm256_set1_epi64x((long long)(step & 0xffffffffu));
    random.step[1] = _mm256_set1_epi64x((long long)(step >> 32));
    return random;
}

// words[k] = those of elements i + 8 k .. i + 8 k + 7; i is a multiple of 64.
static inline __attribute__((always_inline)) void terse_random_words_avx2(const terse_random_avx2 *random, uint64_t i, __m256i words[8]) {
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    const uint64_t first = i / 64 * 16;
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {  // counters 8 half .. 8 half + 7: the even ones, and the odd ones
        __m256i c[2][4];
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; odd++) {
            c[odd][0] = _mm256_add_epi64(_mm256_set1_epi64x((long long)first), _mm256_setr_epi64x(8 * half + odd, 8 * half + odd + 2, 8 * half + odd + 4, 8 * half + odd + 6));
            c[odd][1] = _mm256_set1_epi64x((long long)(first >> 32));
            c[odd][2] = random->step[0];
            c[odd][3] = random->step[1];
        }
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++) {
#pragma GCC unroll 2
            for (int odd = 0; odd < 2; odd++) {
                const __m256i a = _mm256_mul_epu32(c[odd][0], m0), b = _mm256_mul_epu32(c[odd][2], m1);
                c[odd][0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), c[odd][1]), random->key[round][0]);
                c[odd][2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), c[odd][3]), random->key[round][1]);
                c[odd][1] = b;
                c[odd][3] = a;
            }
        }
#pragma GCC unroll 4
        for (int word = 0; word < 4; word++) words[2 * word + half] = _mm256_blend_epi32(c[0][word], _mm256_slli_epi64(c[1][word], 32), 0xAA);
    }
}

#endif
