// The words of random.h, 64 elements at a time, in AVX-512.
//
// A 64-bit lane holds one word of one counter; its upper half is whatever the products leave there, which no product reads.
#ifndef TERSE_RANDOM_AVX512_H
#define TERSE_RANDOM_AVX512_H
#include <immintrin.h>

#include "random.h"

typedef struct terse_random_avx512 {
    __m512i key[10][2], step[2];
} terse_random_avx512;

static inline terse_random_avx512 terse_random_avx512_of(uint64_t seed, uint64_t step) {
    terse_random_avx512 random;
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++, low += 0x9E3779B9u, high += 0xBB67AE85u) {
        random.key[round][0] = _mm512_set1_epi64(low);
        random.key[round][1] = _mm512_set1_epi64(high);
    }
    random.step[0] = _mm512_set1_epi64((long long)(step & 0xffffffffu));
    random.step[1] = _mm512_set1_epi64((long long)(step >> 32));
    return random;
}

// words[k] = those of elements i + 16 k .. i + 16 k + 15; i is a multiple of 64.
static inline __attribute__((always_inline)) void terse_random_words_avx512(const terse_random_avx512 *random, uint64_t i, __m512i words[4]) {
    enum { XOR_OF_THREE = 0x96 };
    const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
    const uint64_t first = i / 64 * 16;
    __m512i c[2][4];  // the 8 even counters, and the 8 odd ones
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
        c[odd][0] = _mm512_add_epi64(_mm512_set1_epi64((long long)first), _mm512_setr_epi64(odd, odd + 2, odd + 4, odd + 6, odd + 8, odd + 10, odd + 12, odd + 14));
        c[odd][1] = _mm512_set1_epi64((long long)(first >> 32));
        c[odd][2] = random->step[0];
        c[odd][3] = random->step[1];
    }
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; odd++) {
            const __m512i a = _mm512_mul_epu32(c[odd][0], m0), b = _mm512_mul_epu32(c[odd][2], m1);
            c[odd][0] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(b, 32), c[odd][1], random->key[round][0], XOR_OF_THREE);
            c[odd][2] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(a, 32), c[odd][3], random->key[round][1], XOR_OF_THREE);
            c[odd][1] = b;
            c[odd][3] = a;
        }
    }
#pragma GCC unroll 4
    for (int word = 0; word < 4; word++) words[word] = _mm512_mask_blend_epi32(0xAAAA, c[0][word], _mm512_slli_epi64(c[1][word], 32));
}

#endif
