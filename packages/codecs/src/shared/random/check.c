// Compares the scalar random words with the authors' known answers, and the vectorised words with the scalar ones.
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "random.h"

// The vectorised words of 64 elements; each function is compiled with its own instructions.
void terse_check_words_avx2(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);
void terse_check_words_avx512(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);
void terse_check_words_neon(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);

// The authors' known answers: Random123, tests/kat_vectors, philox4x32 10.
static void check_philox(void) {
    static const struct {
        uint64_t counter[2], key;
        uint32_t answer[4];
    } known[] = {
        {{0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0ull, ~0ull}, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x85a308d3243f6a88, 0x0370734413198a2e},
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const terse_philox_block block = terse_philox(known[i].counter[0], known[i].counter[1], known[i].key);
        expect(!memcmp(block.word, known[i].answer, sizeof block.word), "philox", "scalar", i,
               "the authors' known answer");
    }
}

static void check_words(void (*words)(uint64_t, uint64_t, uint64_t, uint32_t[64]), const char *by) {
    for (int trial = 0; trial < 2000; trial++) {
        // Counters whose low word is about to carry, too.
        const uint64_t seed = random_word(), step = random_word(),
                       i = (trial % 3 ? random_word() : (random_word() << 34) - 64) / 64 * 64;
        uint32_t mine[64];
        words(seed, step, i, mine);
        for (uint64_t e = 0; e < 64; e++)
            expect(mine[e] == terse_random_word(seed, step, i + e), "random words", by, e, "the word of an element");
    }
}

void terse_check_random(void) {
    static const struct {
        const char *implementation;
        void (*words)(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);
    } all[] = {
#if defined(__x86_64__)
        {"avx512", terse_check_words_avx512},
        {"avx2", terse_check_words_avx2},
#elif defined(__aarch64__)
        {"neon", terse_check_words_neon},
#endif
        {"scalar", NULL},
    };
    check_philox();
    for (size_t i = 0; all[i].words; i++) {
        if (!asked_for(all[i].implementation)) continue;
        const long before = checks;
        check_words(all[i].words, all[i].implementation);
        printf("random words by %s: %ld checks\n", all[i].implementation, checks - before);
    }
}
