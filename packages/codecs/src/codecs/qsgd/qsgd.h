// qsgd: levels up to the norm, drawn. Alistarh et al. 2017.
//
//   scale = fp32(sqrt(sum x^2))        q = +-(floor(v) + draw(v - floor(v))), v = min(|x| s / scale, s)
#ifndef TERSE_QSGD_H
#define TERSE_QSGD_H
#include <math.h>

#include "../../shared/levels/stochastic.h"

extern const terse_codec terse_qsgd_scalar, terse_qsgd_avx2, terse_qsgd_avx512, terse_qsgd_neon;

enum { TERSE_QSGD_TAKES = TERSE_TAKES_BITS | TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS | TERSE_TAKES_RANDOM };

// The table of one implementation.
#define TERSE_QSGD(by)                                                                                     \
    static double measure(const float *x, size_t n) { return terse_reductions_##by.sum_of_squares(x, n); } \
    static double scale_of(double squares, size_t n) { return (void)n, sqrt(squares); }                    \
    static const terse_levels_codec qsgd = {{measure, TERSE_SUM, 0, terse_levels_scale},                   \
                                            1.0,                                                           \
                                            scale_of,                                                      \
                                            terse_stochastic_##by,                                         \
                                            terse_fields_add_##by,                                         \
                                            NULL};                                                         \
    TERSE_LEVELS_TABLE(qsgd, TERSE_QSGD_TAKES, by)

#endif
