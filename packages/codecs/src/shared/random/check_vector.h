// The random words that vectors draw, for check.c. A file includes the words of terse/vector.h before this one.
#include "random_vector.h"

void TERSE_NAMED(terse_check_words)(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]) {
    terse_random random = terse_random_of(seed, step);
    longs drawn[2 * VECTORS];
    uint64_t lanes[64];
    terse_vector_random_words(&random, i, drawn);
    memcpy(lanes, drawn, sizeof lanes);
    for (int k = 0; k < 64; k++) words[k] = (uint32_t)lanes[k];
}
