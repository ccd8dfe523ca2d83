// Every implementation that find.c has, against golden vectors.
#include <string.h>

#include "vectors.h"

enum { MOST = 1 << 18, ELEMENTS = 4096, PLANES = 8 };

static uint8_t written[MOST];
static float added[MOST / 4];

static long compare_codec(const terse_golden_codec *golden) {
    const size_t n = golden->n;
    long compared = 0;
    const terse_codec *codec;
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        if (strcmp(codec->name, golden->name)) continue;
        compared++;
        size_t length = 0;
        if (terse_codec_wire_bytes(codec, n, &golden->options, &length) != TERSE_CODEC_OK ||
            length != golden->wire_bytes) {
            terse_golden_differs(codec->implementation, "the number of wire bytes");
            continue;
        }
        memset(written, 0xA5, length);
        if (terse_codec_encode(codec, written, length, golden->x, n, &golden->options, NULL) != TERSE_CODEC_OK ||
            memcmp(written, golden->wire, length))
            terse_golden_differs(codec->implementation, "the wire");
        memcpy(added, golden->before, 4 * n);
        if (terse_codec_decode_add(codec, added, n, golden->read, length, &golden->options) != TERSE_CODEC_OK ||
            memcmp(added, golden->sum, 4 * n))
            terse_golden_differs(codec->implementation, "the sum");
    }
    return compared;
}

static long compare_vote(const terse_golden_vote *golden) {
    const size_t length = (golden->n + 7) / 8;
    uint8_t *counts[PLANES];
    for (size_t k = 0; k < golden->planes; k++) counts[k] = written + k * ELEMENTS / 8;
    long compared = 0;
    const terse_vote *vote;
    for (size_t i = 0; (vote = terse_vote_at(i)); i++, compared++) {
        for (int is_plus = 0; is_plus < 2; is_plus++)
            if (vote->majority(written, golden->votes, golden->ranks, golden->n,
                               is_plus ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS) != TERSE_CODEC_OK ||
                memcmp(written, golden->majority[is_plus], length))
                terse_golden_differs(vote->implementation, "the majority");
        if (vote->majority_or_zero(written, written + ELEMENTS, golden->votes, golden->ranks, golden->n) !=
                TERSE_CODEC_OK ||
            memcmp(written, golden->plus, length) || memcmp(written + ELEMENTS, golden->nonzero, length))
            terse_golden_differs(vote->implementation, "the majority or zero");
        if (golden->planes != terse_vote_planes(golden->ranks) ||
            vote->tally(counts, golden->votes, golden->ranks, golden->n) != TERSE_CODEC_OK) {
            terse_golden_differs(vote->implementation, "the number of planes");
            continue;
        }
        for (size_t k = 0; k < golden->planes; k++)
            if (memcmp(counts[k], golden->plane[k], length)) terse_golden_differs(vote->implementation, "the tally");
    }
    return compared;
}

const terse_golden_by terse_golden_here = {compare_codec, compare_vote};
