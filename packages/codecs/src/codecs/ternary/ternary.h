// ternary: -1, 0 or +1 per float, as two planes of ceil(n / 8) bytes each.
//
//   x         +  -  0  +  0  +  -  +      (x[0] .. x[7])
//   plus      1  0  0  1  0  1  0  1      byte 0     = 0b10101001
//   nonzero   1  1  0  1  0  1  1  1      byte n / 8 = 0b11101011
#ifndef TERSE_TERNARY_H
#define TERSE_TERNARY_H
#include "terse/codecs.h"

extern const terse_codec terse_ternary_scalar, terse_ternary_avx2, terse_ternary_avx512, terse_ternary_neon;
size_t terse_ternary_wire_bytes(size_t n, const terse_codec_options *options);

// Bytes of one plane.
static inline size_t terse_ternary_plane(size_t n) { return n / 8 + (n % 8 != 0); }

#endif
