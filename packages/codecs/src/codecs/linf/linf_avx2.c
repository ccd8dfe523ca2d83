#include "linf.h"

static double scale_of(const float *x, size_t n) { return terse_reductions_avx2.largest(x, n); }

static const terse_levels_codec linf = {1.0, scale_of, terse_stochastic_avx2, terse_fields_add_avx2, NULL};
TERSE_LEVELS_TABLE(linf, linf, TERSE_LINF_TAKES, avx2)
