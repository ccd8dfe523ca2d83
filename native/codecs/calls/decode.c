// Decoding. The whole wire is checked before anything is added.
#include <string.h>

#include "calls.h"
#include "terse/parallel.h"

typedef struct decoding {
    const terse_codec *codec;
    float *sum;
    const uint8_t *wire;
    size_t n;
    const terse_codec_options *options;
    int clears;  // the sum first
    atomic_int status;
} decoding;

// One piece after the other, so that what is cleared is still in the cache when the wire is added.
static void decode_part(void *context, size_t begin, size_t end) {
    decoding *d = context;
    const size_t piece = d->clears ? CUT : end - begin;
    size_t at = begin, to;
    do {  // of an empty range too: the scales of empty segments are checked
        to = end - at < piece ? end : at + piece;
        if (d->clears && at < to) memset(d->sum + at, 0, (to - at) * sizeof *d->sum);
        const terse_codec_status status = d->codec->decode_add(d->sum, d->wire, d->n, d->options, at, to);
        if (status != TERSE_CODEC_OK) atomic_store(&d->status, status);
        at = to;
    } while (at < end);
}

static void check_part_of_wire(void *context, size_t begin, size_t end) {
    decoding *d = context;
    if (!d->codec->is_good(d->wire, d->n, d->options, begin, end)) atomic_store(&d->status, TERSE_CODEC_BAD_WIRE);
}

int terse_is_good(const terse_codec *codec, const uint8_t *wire, size_t n, const terse_codec_options *o) {
    if (codec->whole || !codec->is_good) return 1;  // decode_add checks it
    decoding d = {.codec = codec, .wire = wire, .n = n, .options = o};
    terse_parallel(n, CUT, check_part_of_wire, &d);
    return atomic_load(&d.status) == TERSE_CODEC_OK;
}

int terse_is_decoded_whole(const terse_codec *codec) { return codec->whole || codec->scattered; }

terse_codec_status terse_decode_checked(const terse_codec *codec, float *sum, const uint8_t *wire, size_t n,
                                        const terse_codec_options *o, int clears) {
    if (!terse_is_good(codec, wire, n, o)) return TERSE_CODEC_BAD_WIRE;
    decoding d = {codec, sum, wire, n, o, clears && !terse_is_decoded_whole(codec), TERSE_CODEC_OK};
    if (clears && !d.clears && n > 0) memset(sum, 0, n * sizeof *sum);
    if (codec->whole) return codec->decode_add(sum, wire, n, o, 0, n);
    terse_parallel(n, CUT, decode_part, &d);
    return (terse_codec_status)atomic_load(&d.status);
}

static terse_codec_status checked_decode(const terse_codec *codec, float *sum, size_t n, const uint8_t *wire,
                                         size_t wire_bytes, const terse_codec_options *o, int clears) {
    const terse_codec_status status = terse_check_buffers(codec, wire, wire_bytes, sum, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (terse_meets_options(sum, n * sizeof(float), n, o)) return TERSE_CODEC_OVERLAP;
    if (!isfinite(o->scale)) return TERSE_CODEC_BAD_SCALE;
    return terse_decode_checked(codec, sum, wire, n, o, clears);
}

terse_codec_status terse_codec_decode_add(const terse_codec *codec, float *sum, size_t n, const uint8_t *wire,
                                          size_t wire_bytes, const terse_codec_options *o) {
    return checked_decode(codec, sum, n, wire, wire_bytes, o, 0);
}

terse_codec_status terse_codec_decode(const terse_codec *codec, float *x, size_t n, const uint8_t *wire,
                                      size_t wire_bytes, const terse_codec_options *o) {
    return checked_decode(codec, x, n, wire, wire_bytes, o, 1);
}
