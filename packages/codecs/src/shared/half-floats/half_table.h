// The table of an implementation of bf16 or f16, from the functions of half_floats.h or half_floats_vector.h.
#ifndef TERSE_HALF_TABLE_H
#define TERSE_HALF_TABLE_H
#include "terse/codecs.h"

static inline size_t terse_half_bytes(size_t n, const terse_codec_options *options) {
    (void)options;
    return 2 * n;
}

#define TERSE_HALF_TABLE(symbol, called, by)                    \
    const terse_codec symbol = {.name = called,                 \
                                .implementation = by,           \
                                .wire_bytes = terse_half_bytes, \
                                .encode = encode,               \
                                .is_good = is_good,             \
                                .decode_add = decode_add};

#endif
