// sign: one bit per float, 1 = plus. n floats -> ceil(n / 8) bytes.
//
//   x     +  -  -  +  +  +  -  +      (x[0] .. x[7])
//   bit   0  1  2  3  4  5  6  7      byte 0 = 0b10111001
#ifndef TERSE_SIGN_H
#define TERSE_SIGN_H
#include "terse/codecs.h"

extern const terse_codec terse_sign_scalar, terse_sign_avx2, terse_sign_avx512, terse_sign_neon;
size_t terse_sign_wire_bytes(size_t n, const terse_codec_options *options);

enum { TERSE_SIGN_TAKES = TERSE_TAKES_ZERO | TERSE_TAKES_HOLD };

#endif
