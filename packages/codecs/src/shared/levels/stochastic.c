#include "stochastic.h"

#include <math.h>

#include "../random/random.h"

// The level below v, and *p: how far v is on the way to the one above.
static unsigned uniform(double v, double *p) {
    const double below = floor(v);
    *p = v - below;
    return (unsigned)below;
}

static unsigned logarithmic(double v, int s, double *p) {
    int exponent;
    const double mantissa = frexp(v, &exponent);  // v = mantissa 2^exponent, 1/2 <= mantissa < 1
    const int k = v > 0 ? s + exponent - 1 : 0;
    *p = k < 1 ? ldexp(v, s - 1) : 2 * mantissa - 1;
    return k < 1 ? 0 : (unsigned)k;
}

void terse_stochastic_scalar(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from,
                             size_t to) {
    const unsigned s = terse_levels_a_side(o), width = terse_field_width(o);
    const double factor = terse_stochastic_factor(o, scale), most = terse_stochastic_most(o);
    uint32_t words[64];
    for (size_t i = from; i < to; i++) {
        if (i == from || i % 64 == 0) terse_random_words(o->seed, o->step, o->index + i / 64 * 64, words);
        double v = fabs((double)x[i]) * factor, p;
        if (v > most) v = most;
        unsigned magnitude = o->levels == TERSE_LEVELS_LOGARITHMIC ? logarithmic(v, (int)s, &p) : uniform(v, &p);
        magnitude += (double)(words[i % 64] >> 1) < p * 0x1p31;
        if (o->levels == TERSE_LEVELS_WITHOUT_ZERO && magnitude == 0 && x[i] != 0.0f) magnitude = 1;
        terse_set_field(fields, i, width, x[i] < 0 ? s - magnitude : s + magnitude);
    }
}
