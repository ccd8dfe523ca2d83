#include "linf.h"

static double scale_of(const float *x, size_t n) { return terse_reductions_scalar.largest(x, n); }

static const terse_levels_codec linf = {1.0, scale_of, terse_stochastic_scalar, terse_fields_add_scalar, NULL};
TERSE_LEVELS_TABLE(linf, linf, TERSE_LINF_TAKES, scalar)
