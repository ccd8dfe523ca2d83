#include <immintrin.h>
#include <string.h>

#include "vote.h"

typedef __m512i word;  // 512 lanes

// Truth tables for vpternlog, of three bits: an odd number of ones; two ones or three.
enum { PARITY = 0x96, MOST = 0xE8 };

static inline word full_add(word *sum, word a, word b) {
    const word carry = _mm512_ternarylogic_epi64(*sum, a, b, MOST);
    *sum = _mm512_ternarylogic_epi64(*sum, a, b, PARITY);
    return carry;
}

static inline word load(const uint8_t *from, size_t bytes) {
    return bytes >= 64 ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(((__mmask64)1 << bytes) - 1, from);
}

#include "vote_words.h"

TERSE_VOTE(avx512)
