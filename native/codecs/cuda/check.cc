// All checks of kernels. Two programs contain it: one for the emulator, one for a GPU. Exit status 1 if anything
// differs.
#include "check.h"
#include "codec_lists.h"

#define DECLARE(symbol, name) void terse_check_##symbol##_cuda();
#define CALL(symbol, name) \
    if (named(name)) terse_check_##symbol##_cuda();
KERNEL_CHECKS(DECLARE)

size_t lengths[] = {0,    1,    2,    3,    7,    8,    9,    15,   16,   17,   31,   32,   33,   47,   63,
                    64,   65,   70,   127,  128,  129,  255,  256,  257,  511,  512,  513,  1021, 1023, 1024,
                    1025, 1536, 2047, 2048, 2049, 4095, 4096, 4097, 5003, 8191, 8192, 8193, 9216, 16500};
size_t length_count = sizeof lengths / sizeof *lengths;

// Beyond the 64 Ki of one partial sum.
static const size_t long_lengths[] = {65536, 65537, 200003};

static void check_codec(const terse_codec_cuda *codec, bool everything) {
    const uint32_t takes = codec->definition->takes;
    const bool transforms = takes & TERSE_TAKES_DIMENSIONS;                        // slow
    const bool many = takes & (TERSE_TAKES_BLOCK | TERSE_TAKES_K) && !transforms;  // has 3 configurations or more
    const configurations ways = configurations_of(codec->definition);
    for (size_t turn = 0; turn < ways.count; turn++) {
        const configuration &c = ways.all[turn];
        for (size_t l = 0; l < length_count; l++)
            for (int kind = 0; kind < 3; kind++) {
                if (transforms && random_word() % 6) continue;
                // Each long length has one kind of numbers, and another kind in the next configuration.
                if (!everything && many && lengths[l] > 300 && (l + turn) % 3 != (size_t)kind) continue;
                check_length(codec, c, lengths[l], kind);
            }
        for (size_t l = 0; many && l < std::size(long_lengths); l++)
            if (everything || l == turn % 6) check_length(codec, c, long_lengths[l], 2);
        check_refusals(codec, c);
    }
}

int check_long() {
    for (size_t i = 0; const terse_codec_cuda *codec = terse_codec_cuda_at(i); i++) {
        const configurations ways = configurations_of(codec->definition);
        for (size_t c = 0; c < ways.count; c++)
            for (const size_t n : {((size_t)1 << 20) - 3, ((size_t)1 << 20) + 1, ((size_t)1 << 20) + 4099})
                check_length(codec, ways.all[c], n, 2);
    }
    std::printf("1 Mi floats: %ld checks, %ld failed\n", checks, bad_checks);
    return bad_checks != 0;
}

int check_all(char **names, int count, bool everything) {
    const auto named = [&](const char *name) {
        bool found = count == 0;
        for (int i = 0; i < count; i++) found = found || !std::strcmp(names[i], name);
        return found;
    };
    if (terse_codecs_cuda_abi() != TERSE_CODECS_CUDA_ABI) return std::printf("the library is of another ABI\n"), 1;
    const terse_codec_cuda *found;
    expect(terse_codec_cuda_find(&found, "no such codec") == TERSE_CODEC_UNKNOWN, "find", "cuda", 0, "an unknown name");
    for (size_t i = 0; const terse_codec_cuda *codec = terse_codec_cuda_at(i); i++) {
        const char *name = codec->definition->name;
        if (!named(name)) continue;
        const long before = checks;
        expect(terse_codec_cuda_find(&found, name) == TERSE_CODEC_OK && found == codec, name, "cuda", 0,
               "found by its name");
        check_codec(codec, everything);
        std::printf("%s cuda %ld checks\n", name, checks - before);
        std::fflush(stdout);
    }
    KERNEL_CHECKS(CALL)
    if (bad_checks) std::printf("%ld of %ld checks failed\n", bad_checks, checks);
    return bad_checks != 0;
}
