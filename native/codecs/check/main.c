// Compares every implementation of codecs, votes, reductions and random words with the scalar one. Exit status 1 if
// anything differs.
//     codecs_check [--few-lengths] [IMPLEMENTATION]   checks all implementations, or this one
//     codecs_check --vectors                          compares with golden vectors on standard input (vectors.h)
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "codec_lists.h"
#include "vectors.h"

#define DECLARE(symbol, name) void terse_check_##symbol(void);
#define CALL(symbol, name) terse_check_##symbol();
CHECKS(DECLARE)

size_t lengths[128], length_count, stride = 1;

// Lengths 0..70, around multiples of 64, primes, and around the groups of pages and blocks that kernels walk.
static const size_t longer[] = {127,  128,  129,  191,  192,  193,  255,  256,  257, 1021,
                                4095, 4096, 4097, 4160, 4199, 5003, 8191, 8192, 8265};
// A third of the work, for emulated machines and sanitizers: short lengths around whole bytes, and one long length of
// each kind.
static const size_t few_longer[] = {128, 193, 257, 1021, 4096, 4199, 8265};

static void list_lengths(int few) {
    stride = few ? 3 : 1;
    for (size_t n = 0; n <= 70; n++)
        if (!few || n % 8 < 2 || n % 8 == 7) lengths[length_count++] = n;
    const size_t *from = few ? few_longer : longer,
                 count = few ? sizeof few_longer / sizeof *few_longer : sizeof longer / sizeof *longer;
    for (size_t i = 0; i < count; i++) lengths[length_count++] = from[i];
}

static void check_finding(void) {
    const terse_codec *codec = NULL;
    expect(terse_codec_find(&codec, "sing", NULL) == TERSE_CODEC_UNKNOWN && !codec, "sing", "", 0,
           "a codec that there is not");
    expect(terse_codec_find(&codec, "sign", "sse9") == TERSE_CODEC_UNAVAILABLE && !codec, "sign", "sse9", 0,
           "an implementation that there is not");
    for (int status = -1; status < 100; status++)
        expect(strlen(terse_codec_sentence((terse_codec_status)status)) > 8, "status", "", (size_t)status,
               "a sentence");
}

static const char *only;  // the name of the only implementation to check; NULL: all

int asked_for(const char *implementation) {
    const char *at;
    for (size_t i = 0; (at = terse_implementation_at(i)); i++)
        if (!strcmp(at, implementation)) return !only || !strcmp(only, implementation);
    return 0;
}

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "--vectors")) return terse_check_vectors(stdin, &terse_golden_here) != 0;
    const int few = count > 1 && !strcmp(arguments[1], "--few-lengths");
    only = count > 1 + few ? arguments[1 + few] : NULL;
    list_lengths(few);
    check_finding();
    const terse_codec *codec, *scalar;
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        if (!asked_for(codec->implementation)) continue;
        if (terse_codec_find(&scalar, codec->name, "scalar") != TERSE_CODEC_OK)
            return printf("%s has no scalar implementation\n", codec->name), 1;
        const long before = checks;
        const configurations ways = configurations_of(codec);
        for (size_t c = 0; c < ways.count; c++)
            check_codec(codec, scalar, ways.all + c), check_refusals(codec, ways.all + c);
        printf("%s %s %ld checks\n", codec->name, codec->implementation, checks - before);
    }
    CHECKS(CALL)
    printf("%ld checks, %ld bad\n", checks, bad_checks);
    return bad_checks != 0;
}
