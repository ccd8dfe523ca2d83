#include <arm_neon.h>
#include <string.h>

#include "vote.h"

typedef uint64x2_t word;  // 128 lanes

static inline word full_add(word *sum, word a, word b) {
    const word half = veorq_u64(*sum, a);
    const word carry = vbslq_u64(half, b, a);  // where two agree, they are the carry; else the third decides
    *sum = veorq_u64(half, b);
    return carry;
}

static inline uint64_t *plane_word(vote_plane *planes, int k, size_t w) { return planes[k] + 2 * w; }

static inline void ripple(vote_plane *planes, int k, int top, size_t w, word carry) {
    for (; k <= top; k++) {
        const word before = vld1q_u64(plane_word(planes, k, w));
        vst1q_u64(plane_word(planes, k, w), veorq_u64(before, carry));
        carry = vandq_u64(before, carry);
    }
}

static inline word load(const uint8_t *from, size_t bytes) {
    if (bytes >= 16) return vreinterpretq_u64_u8(vld1q_u8(from));
    uint8_t padded[16] = {0};
    memcpy(padded, from, bytes);
    return vreinterpretq_u64_u8(vld1q_u8(padded));
}

// As in vote.c, twice as wide.
static void count(vote_plane *planes, int top, unsigned start, const uint8_t *const *votes, size_t ranks, size_t at, size_t bytes) {
    const size_t words = (bytes + 15) / 16;
    for (int k = 0; k <= top; k++) memset(planes[k], start >> k & 1 ? 0xff : 0, 16 * words);

    size_t r = 0;
    for (; r + 8 <= ranks; r += 8)
        for (size_t w = 0; w < words; w++) {
            word v[8];
            for (int j = 0; j < 8; j++) v[j] = load(votes[r + j] + at + 16 * w, bytes - 16 * w);
            word ones = vld1q_u64(plane_word(planes, 0, w));
            word twos = vld1q_u64(plane_word(planes, 1, w));
            word fours = vld1q_u64(plane_word(planes, 2, w));
            const word two_a = full_add(&ones, v[0], v[1]), two_b = full_add(&ones, v[2], v[3]);
            const word four_a = full_add(&twos, two_a, two_b);
            const word two_c = full_add(&ones, v[4], v[5]), two_d = full_add(&ones, v[6], v[7]);
            const word four_b = full_add(&twos, two_c, two_d);
            const word eight = full_add(&fours, four_a, four_b);
            vst1q_u64(plane_word(planes, 0, w), ones);
            vst1q_u64(plane_word(planes, 1, w), twos);
            vst1q_u64(plane_word(planes, 2, w), fours);
            ripple(planes, 3, top, w, eight);
        }
    for (; r < ranks; r++)
        for (size_t w = 0; w < words; w++) ripple(planes, 0, top, w, load(votes[r] + at + 16 * w, bytes - 16 * w));
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

const terse_vote terse_vote_neon = {"neon", majority, majority_or_zero, tally};
