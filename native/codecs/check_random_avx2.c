#include <string.h>

#include "../../packages/codecs/src/random/random_avx2.h"

void terse_check_words_avx2(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]) {
    const terse_random_avx2 random = terse_random_avx2_of(seed, step);
    __m256i vectors[8];
    terse_random_words_avx2(&random, i, vectors);
    memcpy(words, vectors, sizeof vectors);
}
