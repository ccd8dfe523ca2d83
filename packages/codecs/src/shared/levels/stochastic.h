// Stochastic rounding of linf and qsgd: one of the two neighbouring levels is drawn, so that the mean is x.
//
//   uniform        v = min(|x| s / scale, s), magnitude floor(v) + draw(v - floor(v))
//   without zero   the same, but a magnitude 0 of an x that is not 0 becomes 1
//   logarithmic    level k stands for scale 2^(k - s), k = 1 .. s, and 0 for nothing
//
// Vectors draw in whole numbers. For a word of 2 k or 2 k + 1, with / rounding down,
//
//   floor(v) + (k < 2^31 (v - floor(v))) = (ceil(2^32 v) + 2^32 - 1 - 2 k) / 2^32
//
// With p in place of v that is the draw alone.
#ifndef TERSE_STOCHASTIC_H
#define TERSE_STOCHASTIC_H
#include "levels.h"

typedef void terse_stochastic_quantise(uint8_t *fields, const float *x, const terse_codec_options *o, float scale,
                                       size_t from, size_t to);
terse_stochastic_quantise terse_stochastic_scalar, terse_stochastic_avx2, terse_stochastic_avx512,
    terse_stochastic_neon;

// The factor of |x|, and the largest product, which rounding could exceed. With units, `scale` is the unit.
static inline double terse_stochastic_most(const terse_codec_options *o) {
    return o->levels == TERSE_LEVELS_LOGARITHMIC ? 1 : terse_levels_a_side(o);
}
static inline double terse_stochastic_factor(const terse_codec_options *o, float scale) {
    return o->units ? 1.0 / scale : terse_stochastic_most(o) / scale;
}

#endif
