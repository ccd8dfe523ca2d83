// linf: levels up to the largest magnitude, drawn; stochastic.h has the kinds of levels. Lion Cub, sections 2 and 4.2.
//
//   scale = max |x|        q = +-(the level below |x|, or the one above)
#ifndef TERSE_LINF_H
#define TERSE_LINF_H
#include "../../shared/levels/stochastic.h"

extern const terse_codec terse_linf_scalar, terse_linf_avx2, terse_linf_avx512, terse_linf_neon;

enum { TERSE_LINF_TAKES = TERSE_TAKES_BITS | TERSE_TAKES_FIELDS | TERSE_TAKES_UNSCALED | TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS | TERSE_TAKES_LEVELS | TERSE_TAKES_RANDOM };

#endif
