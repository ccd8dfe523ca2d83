// l1: levels up to twice the mean magnitude; larger numbers are clamped. Lion Cub, section 4.2.
//
//   scale = fp32(sum |x| / M)                                M: the elements of the scale group
//   q = clamp(round half even((x s) / (2 scale)), -s, s)
//
// With units, q = clamp(round half even(x / unit), -s, s). An x halfway between two levels must give exactly a half, as
// the division does in fp64: its operands are exact. A product with a rounded factor is a few 2^-45 off, so it is first
// rounded to a multiple of 2^-36. That is the half where the quotient is; and no other x comes nearer than 2^-32 to
// halfway, because x and scale have 24 bits and s has 7.
#ifndef TERSE_L1_H
#define TERSE_L1_H
#include "../../shared/levels/levels.h"

extern const terse_codec terse_l1_scalar, terse_l1_avx2, terse_l1_avx512, terse_l1_neon;

enum {
    TERSE_L1_TAKES = TERSE_TAKES_BITS | TERSE_TAKES_SIDE | TERSE_TAKES_FIELDS | TERSE_TAKES_UNSCALED |
    TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS
};
#define TERSE_L1_REACH 2.0

// Levels per unit of x. With units, `scale` is the unit.
static inline double terse_l1_factor(const terse_codec_options *o, float scale) {
    return o->units ? 1.0 / scale : terse_levels_a_side(o) / (TERSE_L1_REACH * scale);
}

// Both are added to a level. The first rounds it to a multiple of 2^-36. The second rounds the sum to a whole number,
// ties to even, in the low 32 bits.
#define TERSE_L1_MEND 0x1.8p16
#define TERSE_L1_ROUND (0x1.8p52 - TERSE_L1_MEND)

// s + q, q the level of x.
static inline unsigned terse_l1_field(float x, double s, double factor) {
    double level = x * factor;
    level = level > s ? s : level < -s ? -s : level;
    return (unsigned)((level + TERSE_L1_MEND + TERSE_L1_ROUND - (TERSE_L1_MEND + TERSE_L1_ROUND)) + s);
}

void terse_l1_quantise_scalar(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from,
                              size_t to);

// The table of one implementation.
#define TERSE_L1(by, quantise, encode_in_one_pass)                                                            \
    static double measure(const float *x, size_t n) { return terse_reductions_##by.sum_of_magnitudes(x, n); } \
    static double scale_of(double magnitudes, size_t n) { return magnitudes / (double)n; }                    \
    static const terse_levels_codec l1 = {{measure, TERSE_SUM, 0, terse_levels_scale},                        \
                                          TERSE_L1_REACH,                                                     \
                                          scale_of,                                                           \
                                          quantise,                                                           \
                                          terse_fields_add_##by,                                              \
                                          encode_in_one_pass};                                                \
    TERSE_LEVELS_TABLE(l1, TERSE_L1_TAKES, by)

#endif
