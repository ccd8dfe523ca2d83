// linf: levels up to the largest magnitude, drawn; stochastic.h has the kinds of levels. Lion Cub, sections 2 and 4.2.
//
//   scale = max |x|        q = +-(the level below |x|, or the one above)
#ifndef TERSE_LINF_H
#define TERSE_LINF_H
#include "../../shared/levels/stochastic.h"

extern const terse_codec terse_linf_scalar, terse_linf_avx2, terse_linf_avx512, terse_linf_neon;

enum {
    TERSE_LINF_TAKES = TERSE_TAKES_BITS | TERSE_TAKES_FIELDS | TERSE_TAKES_UNSCALED | TERSE_TAKES_BLOCK |
    TERSE_TAKES_SEGMENTS | TERSE_TAKES_LEVELS | TERSE_TAKES_RANDOM
};

// The table of one implementation.
#define TERSE_LINF(by)                                                                              \
    static double measure(const float *x, size_t n) { return terse_reductions_##by.largest(x, n); } \
    static double scale_of(double largest, size_t n) { return (void)n, largest; }                   \
    static const terse_levels_codec linf = {{measure, TERSE_LARGEST, 0, terse_levels_scale},        \
                                            1.0,                                                    \
                                            scale_of,                                               \
                                            terse_stochastic_##by,                                  \
                                            terse_fields_add_##by,                                  \
                                            NULL};                                                  \
    TERSE_LEVELS_TABLE(linf, TERSE_LINF_TAKES, by)

#endif
