#include "qsgd.h"

#include <math.h>

static double scale_of(const float *x, size_t n) { return sqrt(terse_reductions_avx2.sum_of_squares(x, n)); }

static const terse_levels_codec qsgd = {1.0, scale_of, terse_stochastic_avx2, terse_fields_add_avx2, NULL};
TERSE_LEVELS_TABLE(qsgd, qsgd, TERSE_QSGD_TAKES, avx2)
