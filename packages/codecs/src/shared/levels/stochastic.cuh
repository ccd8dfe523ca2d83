// stochastic.h on a GPU: one of the two neighbouring levels is drawn, with probabilities whose mean is x.
#ifndef TERSE_STOCHASTIC_CUH
#define TERSE_STOCHASTIC_CUH
#include "levels.cuh"

template <terse_levels LEVELS>
struct stochastic_writing {
    static constexpr bool DRAWS = true;
    int s;
    double of_scale;  // levels_of_scale
    bool units;

    __device__ double most() const { return LEVELS == TERSE_LEVELS_LOGARITHMIC ? 1 : s; }
    __device__ double factor(float scale) const { return of_scale / (double)scale; }
    __device__ bool refuses(float x) const { return refused_by_units(units, x); }
    __device__ unsigned zero() const { return (unsigned)s; }
    __device__ unsigned field(float x, double factor, unsigned word) const {
        double v = fabs((double)x) * factor;
        v = v > most() ? most() : v;  // rounding could lead above
        int magnitude;
        double p;  // how far v is on the way to the level above
        if (LEVELS == TERSE_LEVELS_LOGARITHMIC) {
            int exponent;
            const double mantissa = frexp(v, &exponent);  // v = mantissa 2^exponent, 1/2 <= mantissa < 1
            const int k = v > 0 ? s + exponent - 1 : 0;
            p = k < 1 ? ldexp(v, s - 1) : 2 * mantissa - 1;
            magnitude = k < 1 ? 0 : k;
        } else {
            const double nearest = v + 0x1p52 - 0x1p52;
            magnitude = nearest_whole(v) - (nearest > v);
            p = v - (nearest > v ? nearest - 1 : nearest);
        }
        magnitude += below(word, p);
        if (LEVELS == TERSE_LEVELS_WITHOUT_ZERO && magnitude == 0 && x != 0.0f) magnitude = 1;
        return (unsigned)(x < 0 ? s - magnitude : s + magnitude);
    }
};

template <terse_levels LEVELS>
stochastic_writing<LEVELS> stochastic_writing_of(const terse_codec_options *o) {
    const int s = (int)terse_levels_a_side(o);
    return {s, levels_of_scale(o, LEVELS == TERSE_LEVELS_LOGARITHMIC ? 1 : s), o->units != nullptr};
}

#endif
