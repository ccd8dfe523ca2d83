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

static inline word *plane_word(vote_plane *planes, int k, size_t w) { return (word *)planes[k] + w; }

static inline void ripple(vote_plane *planes, int k, int top, size_t w, word carry) {
    for (; k <= top; k++) {
        const word before = _mm512_load_si512(plane_word(planes, k, w));
        _mm512_store_si512(plane_word(planes, k, w), _mm512_xor_si512(before, carry));
        carry = _mm512_and_si512(before, carry);
    }
}

static inline word load(const uint8_t *from, size_t bytes) {
    return bytes >= 64 ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(((__mmask64)1 << bytes) - 1, from);
}

// As in vote.c, eight times as wide, and two operations for a full adder's five.
static void count(vote_plane *planes, int top, unsigned start, const uint8_t *const *votes, size_t ranks, size_t at, size_t bytes) {
    const size_t words = (bytes + 63) / 64;
    for (int k = 0; k <= top; k++) memset(planes[k], start >> k & 1 ? 0xff : 0, 64 * words);

    size_t r = 0;
    for (; r + 8 <= ranks; r += 8)
        for (size_t w = 0; w < words; w++) {
            word v[8];
            for (int j = 0; j < 8; j++) v[j] = load(votes[r + j] + at + 64 * w, bytes - 64 * w);
            word ones = _mm512_load_si512(plane_word(planes, 0, w));
            word twos = _mm512_load_si512(plane_word(planes, 1, w));
            word fours = _mm512_load_si512(plane_word(planes, 2, w));
            const word two_a = full_add(&ones, v[0], v[1]), two_b = full_add(&ones, v[2], v[3]);
            const word four_a = full_add(&twos, two_a, two_b);
            const word two_c = full_add(&ones, v[4], v[5]), two_d = full_add(&ones, v[6], v[7]);
            const word four_b = full_add(&twos, two_c, two_d);
            const word eight = full_add(&fours, four_a, four_b);
            _mm512_store_si512(plane_word(planes, 0, w), ones);
            _mm512_store_si512(plane_word(planes, 1, w), twos);
            _mm512_store_si512(plane_word(planes, 2, w), fours);
            ripple(planes, 3, top, w, eight);
        }
    for (; r < ranks; r++)
        for (size_t w = 0; w < words; w++) ripple(planes, 0, top, w, load(votes[r] + at + 64 * w, bytes - 64 * w));
}

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
