// f16: IEEE 754 binary16, rounded to nearest even. n floats -> 2 n bytes, little-endian.
//
//   bit of the half   15    14 ... 10  9 ... 0
//                     sign  exponent   fraction
#ifndef TERSE_F16_H
#define TERSE_F16_H
#include "terse/codecs.h"

extern const terse_codec terse_f16_scalar, terse_f16_avx2, terse_f16_neon;

// The bits of the largest |x| that does not round to infinity, just below 65520. NaN and infinity lie above.
enum { TERSE_F16_LARGEST = 0x477fefff };
// A half with all of these bits set is infinite or NaN.
enum { TERSE_F16_INFINITE = 0x7c00 };

#endif
