// vote: P ranks' signs -> one sign, or a count, per element. The signs stay packed: every element has a small counter,
// one bit of it in each plane, and carry-save addition advances 64 (or 256) counters at once.
//
//   votes of 3 ranks   1 1 0 1      counts  3 2 0 1      plane 0 (ones)  1 0 0 1
//                      1 1 0 0                           plane 1 (twos)  1 1 0 0
//                      1 0 0 0      majority 1 1 0 0
//
// The majority needs no comparison: counters that start at 2^k - T overflow into plane k exactly if the count reaches
// T.
#ifndef TERSE_VOTE_H
#define TERSE_VOTE_H
#include "terse/codecs.h"

extern const terse_vote terse_vote_scalar, terse_vote_avx2, terse_vote_avx512, terse_vote_neon;

enum {
    VOTE_PLANES = 11,      // bits of TERSE_VOTE_MAX_RANKS
    VOTE_BLOCK_WORDS = 64  // counted at a time: all planes of a block stay in the first-level cache
};
typedef uint64_t vote_plane[VOTE_BLOCK_WORDS];

// planes[0..top] = bits of start + the number of plus votes, for the elements of bytes [at, at + bytes) of every vote.
// Only this function differs between implementations. Bits past the end may have any value.
typedef void vote_count(vote_plane *planes, int top, unsigned start, const uint8_t *const *votes, size_t ranks,
                        size_t at, size_t bytes);

// The three kinds of vote, for any implementation of the count.
terse_codec_status vote_majority(vote_count *count, uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n,
                                 terse_zero tie);
terse_codec_status vote_majority_or_zero(vote_count *count, uint8_t *plus, uint8_t *nonzero,
                                         const uint8_t *const *votes, size_t ranks, size_t n);
terse_codec_status vote_tally(vote_count *count, uint8_t *const *planes, const uint8_t *const *votes, size_t ranks,
                              size_t n);

#endif
