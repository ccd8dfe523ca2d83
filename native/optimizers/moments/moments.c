#include <stdint.h>

static inline uint64_t plus_of_block(const float *x) {
    uint64_t plus = 0;
    for (int k = 0; k < 64; k++) plus |= (uint64_t)(x[k] >= 0.0f) << k;
    return plus;
}

static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
    for (int k = 0; k < 64; k++) m[k] = plus >> k & 1 ? if_plus : if_minus;
}

#include "moments.h"

const terse_moments terse_moments_scalar = {"scalar", accumulate, squares, accumulate_and_squares, carry, carry_mean, apply, refresh};
