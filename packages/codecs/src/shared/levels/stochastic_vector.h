// The walk that the vector implementations of stochastic levels share. Each file that includes this defines
//
//   drawing_of  sets itself up; x[0] and field 0 are those of the element that draws begin with
//   draw_round  64 elements, i the first
#ifndef TERSE_STOCHASTIC_VECTOR_H
#define TERSE_STOCHASTIC_VECTOR_H
#include "stochastic.h"

TERSE_ROUND_FUNCTION uniform_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_UNIFORM); }
TERSE_ROUND_FUNCTION without_zero_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_WITHOUT_ZERO); }
TERSE_ROUND_FUNCTION logarithmic_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_LOGARITHMIC); }

static inline __attribute__((always_inline)) void walk(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 63) / 64 * 64;  // where draws begin
    size_t done = from;
    if (first + 64 <= to) {
        terse_stochastic_scalar(fields, x, o, scale, from, first);
        drawing d = drawing_of(fields + first / 8 * terse_field_width(o), x + first, o, scale, o->index + first);
        done = first + (o->levels == TERSE_LEVELS_UNIFORM       ? terse_walk(to - first, uniform_round, &d)
                        : o->levels == TERSE_LEVELS_LOGARITHMIC ? terse_walk(to - first, logarithmic_round, &d)
                                                                : terse_walk(to - first, without_zero_round, &d));
    }
    terse_stochastic_scalar(fields, x, o, scale, done, to);
}

#endif
