#include "qsgd.h"

#include <math.h>

static double scale_of(const float *x, size_t n) { return sqrt(terse_reductions_scalar.sum_of_squares(x, n)); }

static const terse_levels_codec qsgd = {1.0, scale_of, terse_stochastic_scalar, terse_fields_add_scalar, NULL};
TERSE_LEVELS_TABLE(qsgd, qsgd, TERSE_QSGD_TAKES, scalar)
