// The counting that all implementations share, over words as wide as theirs, and their three kinds of vote. Include it
// after `word`, a type that has ^ and &,
//
//   full_add(&sum, a, b)   sum + a + b, per element: the low bit stays in sum, the carry is returned
//   load(from, bytes)      a word of votes, at least `bytes` of it; what lies past them may be anything
#include <string.h>

#include "vote.h"

static inline word vote_plane_word(vote_plane *planes, int k, size_t w) {
    word bits;
    memcpy(&bits, (uint8_t *)planes[k] + w * sizeof bits, sizeof bits);
    return bits;
}

static inline void vote_set_plane_word(vote_plane *planes, int k, size_t w, word bits) {
    memcpy((uint8_t *)planes[k] + w * sizeof bits, &bits, sizeof bits);
}

// Adds a carry to the counters' planes from k on.
static inline void ripple(vote_plane *planes, int k, int top, size_t w, word carry) {
    for (; k <= top; k++) {
        const word before = vote_plane_word(planes, k, w);
        vote_set_plane_word(planes, k, w, before ^ carry);
        carry &= before;
    }
}

static void count(vote_plane *planes, int top, unsigned start, const uint8_t *const *votes, size_t ranks, size_t at,
                  size_t bytes) {
    const size_t words = (bytes + sizeof(word) - 1) / sizeof(word);
    for (int k = 0; k <= top; k++) memset(planes[k], start >> k & 1 ? 0xff : 0, words * sizeof(word));

    size_t r = 0;
    for (; r + 8 <= ranks; r += 8)  // eight votes at a time: 7 full adders, and one carry that goes past the fours
        for (size_t w = 0; w < words; w++) {
            // The block after the next: a processor's own prefetching does not follow eight streams that change every
            // 512 bytes.
            for (int j = 0; j < 8 && w * sizeof(word) % 64 == 0; j++)
                __builtin_prefetch(votes[r + j] + at + w * sizeof(word) + 2 * sizeof(vote_plane));
            word v[8];
            for (int j = 0; j < 8; j++) v[j] = load(votes[r + j] + at + w * sizeof(word), bytes - w * sizeof(word));
            word ones = vote_plane_word(planes, 0, w), twos = vote_plane_word(planes, 1, w),
                 fours = vote_plane_word(planes, 2, w);
            const word two_a = full_add(&ones, v[0], v[1]), two_b = full_add(&ones, v[2], v[3]);
            const word four_a = full_add(&twos, two_a, two_b);
            const word two_c = full_add(&ones, v[4], v[5]), two_d = full_add(&ones, v[6], v[7]);
            const word four_b = full_add(&twos, two_c, two_d);
            const word eight = full_add(&fours, four_a, four_b);
            vote_set_plane_word(planes, 0, w, ones);
            vote_set_plane_word(planes, 1, w, twos);
            vote_set_plane_word(planes, 2, w, fours);
            ripple(planes, 3, top, w, eight);
        }
    for (; r < ranks; r++)
        for (size_t w = 0; w < words; w++)
            ripple(planes, 0, top, w, load(votes[r] + at + w * sizeof(word), bytes - w * sizeof(word)));
}

static terse_codec_status majority(uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n, terse_zero tie) {
    return vote_majority(count, out, votes, ranks, n, tie);
}

static terse_codec_status majority_or_zero(uint8_t *plus, uint8_t *nonzero, const uint8_t *const *votes, size_t ranks,
                                           size_t n) {
    return vote_majority_or_zero(count, plus, nonzero, votes, ranks, n);
}

static terse_codec_status tally(uint8_t *const *planes, const uint8_t *const *votes, size_t ranks, size_t n) {
    return vote_tally(count, planes, votes, ranks, n);
}

#define TERSE_VOTE(by) const terse_vote terse_vote_##by = {#by, majority, majority_or_zero, tally};
