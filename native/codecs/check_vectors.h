#ifndef TERSE_CHECK_VECTORS_H
#define TERSE_CHECK_VECTORS_H
#include <stdio.h>

// Reads golden vectors as lines and compares every implementation with them; prints what differs. Returns how many did, or -1
// if the text is not understood.
//
//     codec qsgd          or "vote": begins a case
//     bits 4              and the other options; levels and clip's bits as numbers, segments as ends after their count
//     hold 02             bytes are hexadecimal, fp32 little-endian
//     x 0000803f          wire ..., scale ..., sum ...
//     done
//
// A vote has `n 13`, then `vote 1120` or `absent -` for each rank, `plane ..` for each plane, `majority-plus`, `majority-minus`, `plus`, `nonzero`.
long terse_check_vectors(FILE *from);

#endif
