#include "l1.h"

void terse_l1_quantise_scalar(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from,
                              size_t to) {
    const unsigned width = terse_field_width(o);
    const double s = terse_levels_a_side(o), factor = terse_l1_factor(o, scale);
    for (size_t i = from; i < to; i++) terse_set_field(fields, i, width, terse_l1_field(x[i], s, factor));
}

static double measure(const float *x, size_t n) { return terse_reductions_scalar.sum_of_magnitudes(x, n); }

static const terse_levels_codec l1 = {
    TERSE_L1_REACH, measure, terse_l1_scale, TERSE_SUM, terse_l1_quantise_scalar, terse_fields_add_scalar, NULL};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, scalar)
