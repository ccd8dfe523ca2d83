// count: the number of ranks that vote plus, in fields that can be summed on the wire; fields.h has the picture.
//
//   1 bit        field = 1 where plus                       decoded 2 c - ranks
//   2 .. 8 bits  field = x + s, x whole from -s to s        decoded c - ranks s
#ifndef TERSE_COUNT_H
#define TERSE_COUNT_H
#include "../../shared/fields/fields.h"

extern const terse_codec terse_count_scalar, terse_count_avx2, terse_count_avx512, terse_count_neon;

enum { TERSE_COUNT_TAKES = TERSE_TAKES_ZERO | TERSE_TAKES_BITS | TERSE_TAKES_FIELDS };

size_t terse_count_wire_bytes(size_t n, const terse_codec_options *o);
terse_codec_status terse_count_check(size_t n, const terse_codec_options *o);
size_t terse_count_encode_scalar(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,
                                 size_t end);
terse_field_meaning terse_count_meaning(const terse_codec_options *o);

#endif
