// Answers golden vectors on another processor: requests on standard input, words between spaces, one request a line; for each as
// many lines as there are implementations, and an empty one. Bytes are hexadecimal, - is none.
//
//   codec NAME bits width ranks unscaled levels dimensions block k clip zero seed step index scale HOLD X SEGMENTS end ...
//       -> IMPLEMENTATION WIRE SUM               the sum begins as X
//   vote LANES RANKS VOTE ...
//       -> IMPLEMENTATION MAJORITY-PLUS MAJORITY-MINUS PLUS NONZERO PLANE ...
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terse/codecs.h"

static void fail(const char *what) {
    fprintf(stderr, "golden: %s\n", what);
    exit(2);
}

static char word[1 << 20];
static const char *next(void) {
    if (scanf("%1048575s", word) != 1) fail("a request ends early");
    return word;
}
static uint64_t number(void) { return strtoull(next(), NULL, 10); }
static double real(void) { return strtod(next(), NULL); }

// NULL for -, which is none; an empty wire is written as 0 bytes after an x.
static uint8_t *bytes(size_t *length) {
    const char *text = next();
    if (!strcmp(text, "-")) return *length = 0, NULL;
    if (*text++ != 'x') fail("bytes begin with x");
    *length = strlen(text) / 2;
    uint8_t *to = malloc(*length + 1);
    for (size_t i = 0; i < *length; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) fail("bytes are hexadecimal");
        to[i] = (uint8_t)byte;
    }
    return to;
}

static void print(const void *from, size_t length) {
    printf(" x");
    for (size_t i = 0; i < length; i++) printf("%02x", ((const uint8_t *)from)[i]);
}

static void answer_codec(void) {
    const terse_codec *scalar;
    if (terse_codec_find(&scalar, next(), "scalar") != TERSE_CODEC_OK) fail("no codec has this name");
    terse_codec_options o = TERSE_CODEC_OPTIONS;
    o.bits = (uint32_t)number(), o.width = (uint32_t)number(), o.ranks = (uint32_t)number(), o.unscaled = (uint32_t)number();
    o.levels = (terse_levels)number(), o.dimensions = (uint32_t)number(), o.block = (size_t)number(), o.k = (size_t)number();
    o.clip = (float)real(), o.zero = (terse_zero)number(), o.seed = number(), o.step = number(), o.index = number(), o.scale = (float)real();
    size_t length;
    o.hold = bytes(&length);
    float *x = (float *)bytes(&length);
    const size_t n = length / sizeof *x, count = (size_t)number();
    size_t *ends = malloc((count + 1) * sizeof *ends);
    for (size_t s = 0; s < count; s++) ends[s] = (size_t)number();
    if (count) o.segments = ends, o.segment_count = count;

    const terse_codec *codec;
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        if (strcmp(codec->name, scalar->name)) continue;
        size_t wire_bytes = 0;
        terse_codec_status status = terse_codec_wire_bytes(codec, n, &o, &wire_bytes);
        uint8_t *wire = malloc(wire_bytes + 1);
        float *sum = malloc(length + 1);
        memcpy(sum, x, length);
        if (status == TERSE_CODEC_OK) status = terse_codec_encode(codec, wire, wire_bytes, x, n, &o, NULL);
        if (status == TERSE_CODEC_OK) status = terse_codec_decode_add(codec, sum, n, wire, wire_bytes, &o);
        if (status != TERSE_CODEC_OK) fail(terse_codec_sentence(status));
        printf("%s", codec->implementation), print(wire, wire_bytes), print(sum, length), printf("\n");
        free(wire), free(sum);
    }
    free(x), free(ends), free((void *)o.hold);
}

static void answer_vote(void) {
    const size_t n = (size_t)number(), ranks = (size_t)number(), length = n / 8 + (n % 8 != 0), planes = terse_vote_planes(ranks);
    uint8_t **votes = malloc(ranks * sizeof *votes), *out[16];
    for (size_t r = 0, given; r < ranks; r++) votes[r] = bytes(&given);
    for (size_t k = 0; k < 16; k++) out[k] = malloc(length + 1);
    const uint8_t *const *from = (const uint8_t *const *)votes;

    const terse_vote *vote;
    for (size_t i = 0; (vote = terse_vote_at(i)); i++) {
        printf("%s", vote->implementation);
        vote->majority(out[0], from, ranks, n, TERSE_ZERO_PLUS), print(out[0], length);
        vote->majority(out[0], from, ranks, n, TERSE_ZERO_MINUS), print(out[0], length);
        vote->majority_or_zero(out[0], out[1], from, ranks, n), print(out[0], length), print(out[1], length);
        vote->tally(out, from, ranks, n);
        for (size_t k = 0; k < planes; k++) print(out[k], length);
        printf("\n");
    }
    for (size_t r = 0; r < ranks; r++) free(votes[r]);
    for (size_t k = 0; k < 16; k++) free(out[k]);
    free(votes);
}

int main(void) {
    while (scanf("%1048575s", word) == 1) {
        if (!strcmp(word, "codec")) answer_codec();
        else if (!strcmp(word, "vote")) answer_vote();
        else fail("a request is a codec's or a vote's");
        printf("\n");
    }
    return 0;
}
