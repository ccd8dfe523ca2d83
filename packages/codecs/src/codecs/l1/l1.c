#include "l1.h"

void terse_l1_quantise_scalar(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from,
                              size_t to) {
    const unsigned width = terse_field_width(o);
    const double s = terse_levels_a_side(o), factor = terse_l1_factor(o, scale);
    for (size_t i = from; i < to; i++) terse_set_field(fields, i, width, terse_l1_field(x[i], s, factor));
}

TERSE_L1(scalar, terse_l1_quantise_scalar, NULL)
