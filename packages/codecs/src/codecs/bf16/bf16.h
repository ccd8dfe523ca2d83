// bf16: the upper half of an fp32, rounded to nearest even. n floats -> 2 n bytes, little-endian.
//
//   bit of the half   15    14 ... 7   6 ... 0
//                     sign  exponent   fraction
#ifndef TERSE_BF16_H
#define TERSE_BF16_H
#include "terse/codecs.h"

extern const terse_codec terse_bf16_scalar, terse_bf16_avx2, terse_bf16_neon;

// The bits of the largest |x| that does not round to infinity. NaN and infinity lie above.
enum { TERSE_BF16_LARGEST = 0x7f7f7fff };
// A half with all of these bits set is infinite or NaN.
enum { TERSE_BF16_INFINITE = 0x7f80 };

#endif
