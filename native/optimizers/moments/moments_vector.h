// What moments.h asks for, in the words of terse/vector.h, which a file includes before this one.
static inline void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus) {
    EACH_VECTOR STORE(m + LANES * k, CHOOSE(LANES_OF(plus, k), SPLAT(if_plus), SPLAT(if_minus)));
}

#include "moments.h"

const terse_moments TERSE_NAMED(terse_moments) = {TERSE_IMPLEMENTATION,   accumulate, squares,
                                                  accumulate_and_squares, apply,      refresh};
