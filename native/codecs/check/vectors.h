#ifndef TERSE_CHECK_VECTORS_H
#define TERSE_CHECK_VECTORS_H
#include <stdio.h>

#include "terse/codecs.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct terse_golden_codec {
    const char *name;
    terse_codec_options options;  // `scale` is what decode_add is called with
    size_t n, wire_bytes;
    const float *x;
    const uint8_t *wire;
    const uint8_t *read;        // the wire that is decoded: the same, or the sum of several
    const float *before, *sum;  // what it is added to, and what that gives
} terse_golden_codec;

typedef struct terse_golden_vote {
    size_t n, ranks, planes;
    const uint8_t *const *votes;
    const uint8_t *majority[2];  // ties minus, ties plus
    const uint8_t *plus, *nonzero;
    const uint8_t *const *plane;
} terse_golden_vote;

// Each compares one case by all implementations that there are, says terse_golden_differs where one differs, and
// returns how many there are.
typedef struct terse_golden_by {
    long (*codec)(const terse_golden_codec *golden);
    long (*vote)(const terse_golden_vote *golden);
} terse_golden_by;
extern const terse_golden_by terse_golden_here;  // every implementation in find.c

void terse_golden_differs(const char *implementation, const char *what);

// Reads golden vectors as lines, compares with them and prints what differs. Returns how many differed, or -1 if it
// does not understand the text.
//
//     codec qsgd          or "vote": begins a case
//     bits 4              and the other options; levels and clip's bits as numbers, segments as ends after their count
//     hold 02             bytes are hexadecimal, fp32 little-endian; units likewise
//     x 0000803f          wire ..., scale ..., sum ...; where another wire is decoded: summed ..., and before ...
//     done
//
// A vote has `n 13`, then `vote 1120` or `absent -` for each rank, `plane ..` for each plane, `majority-plus`,
// `majority-minus`, `plus`, `nonzero`.
long terse_check_vectors(FILE *from, const terse_golden_by *by);

#ifdef __cplusplus
}
#endif
#endif
