#include <stddef.h>
#include <stdint.h>

static inline uint64_t plus_of_block(const float *x) {
    uint64_t plus = 0;
    for (int k = 0; k < 64; k++) plus |= (uint64_t)(x[k] >= 0.0f) << k;
    return plus;
}

static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
    for (int k = 0; k < 64; k++) m[k] = plus >> k & 1 ? if_plus : if_minus;
}

static inline void add_to_block(float *x, const uint8_t *const *wires, const float *scales, size_t ranks, size_t byte) {
    for (size_t r = 0; r < ranks; r++)
        for (int k = 0; k < 64; k++) x[k] += wires[r][byte + (size_t)k / 8] >> k % 8 & 1 ? scales[r] : -scales[r];
}

#include "moments.h"

const terse_moments terse_moments_scalar = {"scalar", accumulate, squares, accumulate_and_squares, carry, carry_mean, apply, refresh};
