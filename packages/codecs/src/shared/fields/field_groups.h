// Fields that do not fill bytes: what AVX2 and NEON end with.
#ifndef TERSE_GROUPS_H
#define TERSE_GROUPS_H
#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) void terse_join_groups_of(uint8_t *to, const uint64_t groups[8],
                                                                       const unsigned width) {
    uint64_t words[8] = {0};
#pragma GCC unroll 8
    for (unsigned g = 0; g < 8; g++) {
        const unsigned word = g * width / 8, shift = g * width % 8 * 8;
        words[word] |= groups[g] << shift;
        if (shift + 8 * width > 64) words[word + 1] |= groups[g] >> (64 - shift);
    }
    memcpy(to, words, 8 * width);
}

// Eight groups of 8 * width bits, to one run of bytes. Inlined, width is a constant.
static inline __attribute__((always_inline)) void terse_join_groups(uint8_t *to, const uint64_t groups[8],
                                                                    unsigned width) {
    switch (width) {
        case 2: terse_join_groups_of(to, groups, 2); break;
        case 3: terse_join_groups_of(to, groups, 3); break;
        case 4: terse_join_groups_of(to, groups, 4); break;
        case 5: terse_join_groups_of(to, groups, 5); break;
        case 6: terse_join_groups_of(to, groups, 6); break;
        default: terse_join_groups_of(to, groups, 7);
    }
}

#endif
