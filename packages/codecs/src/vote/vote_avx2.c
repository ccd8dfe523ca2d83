#include <immintrin.h>
#include <string.h>

#include "vote.h"

typedef __m256i word;  // 256 lanes

static inline word full_add(word *sum, word a, word b) {
    const word half = _mm256_xor_si256(*sum, a);
    const word carry = _mm256_or_si256(_mm256_and_si256(*sum, a), _mm256_and_si256(half, b));
    *sum = _mm256_xor_si256(half, b);
    return carry;
}

static inline word load(const uint8_t *from, size_t bytes) {
    if (bytes >= 32) return _mm256_loadu_si256((const word *)from);
    uint8_t padded[32] = {0};
    memcpy(padded, from, bytes);
    return _mm256_loadu_si256((const word *)padded);
}

#include "vote_words.h"

TERSE_VOTE(avx2)
