#include <immintrin.h>
#include <string.h>

#include "vote.h"

typedef __m512i word;  // 512 lanes

enum { PARITY = 0x96, MOST = 0xE8 };  // truth tables for vpternlog, of three bits: an odd number of ones; two ones or three

static inline word full_add(word *sum, word a, word b) {
    const word carry = _mm512_ternarylogic_epi64(*sum, a, b, MOST);
    *sum = _mm512_ternarylogic_epi64(*sum, a, b, PARITY);
    return carry;
}

static inline word load(const uint8_t *from, size_t bytes) {
    return bytes >= 64 ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(((__mmask64)1 << bytes) - 1, from);
}

#include "vote_words.h"

static terse_codec_status majority(uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n, terse_zero tie) {
    return vote_majority(count, out, votes, ranks, n, tie);
}

static terse_codec_status majority_or_zero(uint8_t *plus, uint8_t *nonzero, const uint8_t *const *votes, size_t ranks, size_t n) {
    return vote_majority_or_zero(count, plus, nonzero, votes, ranks, n);
}

static terse_codec_status tally(uint8_t *const *planes, const uint8_t *const *votes, size_t ranks, size_t n) {
    return vote_tally(count, planes, votes, ranks, n);
}

const terse_vote terse_vote_avx512 = {"avx512", majority, majority_or_zero, tally};
