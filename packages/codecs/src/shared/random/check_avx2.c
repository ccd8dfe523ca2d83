#include "random_avx2.h"

void terse_check_words_avx2(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]) {
    terse_random random = terse_random_of(seed, step);
    union {
        __m256i vectors[16];
        uint64_t lanes[64];
    } drawn;
    terse_random_words_avx2(&random, i, drawn.vectors);
    for (int k = 0; k < 64; k++) words[k] = (uint32_t)drawn.lanes[k];
}
