#include <stddef.h>
#include <stdint.h>

static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
    for (int k = 0; k < 64; k++) m[k] = plus >> k & 1 ? if_plus : if_minus;
}

#include "moments.h"

const terse_moments terse_moments_scalar = {"scalar", accumulate, squares, accumulate_and_squares, apply, refresh};
