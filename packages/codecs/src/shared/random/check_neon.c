#include <string.h>

#include "random_neon.h"

void terse_check_words_neon(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]) {
    terse_random random = terse_random_of(seed, step);
    uint32x4_t vectors[16];
    terse_random_words_neon(&random, i, vectors);
    memcpy(words, vectors, sizeof vectors);
}
