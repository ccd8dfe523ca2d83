#include <string.h>

#include "../../packages/codecs/src/random/random_avx512.h"

void terse_check_words_avx512(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]) {
    const terse_random_avx512 random = terse_random_avx512_of(seed, step);
    __m512i vectors[4];
    terse_random_words_avx512(&random, i, vectors);
    memcpy(words, vectors, sizeof vectors);
}
