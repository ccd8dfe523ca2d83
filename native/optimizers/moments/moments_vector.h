// What moments.h asks for, in the words of terse/vector.h, which a file includes before this one.
static inline uint64_t plus_of_block(const float *x) {
    mask plus[VECTORS];
    EACH_VECTOR plus[k] = NOT_BELOW(LOAD(x + LANES * k), SPLAT(0.0f));
    return WORD(plus);
}

static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
    EACH_VECTOR STORE(m + LANES * k, CHOOSE(LANES_OF(plus, k), SPLAT(if_plus), SPLAT(if_minus)));
}

static inline void add_to_block(float *x, const uint8_t *const *wires, const float *scales, size_t ranks, size_t byte) {
    vec sum[VECTORS];
    EACH_VECTOR sum[k] = LOAD(x + LANES * k);
    for (size_t r = 0; r < ranks; r++) {
        const uint64_t plus = terse_load_word(wires[r] + byte);
        EACH_VECTOR sum[k] += CHOOSE(LANES_OF(plus, k), SPLAT(scales[r]), SPLAT(-scales[r]));
    }
    EACH_VECTOR STORE(x + LANES * k, sum[k]);
}

#include "moments.h"

const terse_moments TERSE_NAMED(terse_moments) = {TERSE_IMPLEMENTATION, accumulate, squares, accumulate_and_squares, carry, carry_mean, apply, refresh};
