// What the calls share: their checks, and encoding and decoding with arguments that are checked.
#pragma once
#include <math.h>
#include <stdatomic.h>

#include "terse/codecs.h"

enum { CUT = 4096 };  // elements that a thread takes: whole 64-bit words of signs, whole groups of terse/walk.h

// checks.c
terse_codec_status terse_check(const terse_codec *codec, size_t n, const terse_codec_options *o);
terse_codec_status terse_check_buffers(const terse_codec *codec, const uint8_t *wire, size_t wire_bytes, const float *x,
                                       size_t n, const terse_codec_options *o);
// The same, and the options that only encoding reads.
terse_codec_status terse_check_encoding(const terse_codec *codec, const uint8_t *wire, size_t wire_bytes,
                                        const float *x, size_t n, const terse_codec_options *o);
// Whether what a call writes shares memory with what its options point to.
int terse_meets_options(const void *written, size_t bytes, size_t n, const terse_codec_options *o);

// What a call returns that has refused element `at`, a number of this value.
static inline terse_codec_status terse_refusal(size_t at, float value, size_t *bad) {
    if (bad) *bad = at;
    return isfinite(value) ? TERSE_CODEC_DOES_NOT_FIT : TERSE_CODEC_NOT_FINITE;
}

// *least = the lesser of both.
static inline void terse_lower(atomic_size_t *least, size_t to) {
    size_t before = atomic_load(least);
    while (to < before && !atomic_compare_exchange_weak(least, &before, to)) {
    }
}

// encode.c; *bad is the first element that is refused.
terse_codec_status terse_encode_checked(const terse_codec *codec, uint8_t *wire, const float *x, size_t n,
                                        const terse_codec_options *o, size_t *bad);

// decode.c
int terse_is_good(const terse_codec *codec, const uint8_t *wire, size_t n, const terse_codec_options *o);
// Whether a piece cannot be changed before the wire is added to it, and the next piece afterwards.
int terse_is_decoded_whole(const terse_codec *codec);
// sum += scale * decode(wire); `clears`: sum = it. A refused wire adds nothing.
terse_codec_status terse_decode_checked(const terse_codec *codec, float *sum, const uint8_t *wire, size_t n,
                                        const terse_codec_options *o, int clears);
