// The functions to which the fuzzers and codecs_mutate give bytes. Each takes any bytes; an abort, which prints a
// sentence, is a fault of the library.
#ifndef TERSE_FUZZ_TARGETS_H
#define TERSE_FUZZ_TARGETS_H
#include <stdio.h>
#include <stdlib.h>

#include "terse/codecs.h"

// Reads the bytes as a frame, decodes its wire with every implementation of its codec, and writes the frame anew.
terse_codec_status read_and_use(const uint8_t *bytes, size_t size);

// The same. If only the checksum is wrong, once more with the right one. Returns the status of the first reading.
terse_codec_status fuzz_frame(const uint8_t *bytes, size_t size);

// Takes a codec, its options, floats and a wire from the bytes, and makes every call with every implementation.
void fuzz_options(const uint8_t *bytes, size_t size);

// Writes the right checksum into the frame that the header's lengths describe. Returns 0 if these are more than `size`.
int seal(uint8_t *bytes, size_t size);

static inline void require(int good, const char *what, const terse_codec *codec) {
    if (good) return;
    fprintf(stderr, "%s %s: %s\n", codec ? codec->name : "frame", codec ? codec->implementation : "", what);
    abort();
}

// Exactly so many bytes, so that a sanitizer sees an access behind them; one byte for none, because malloc(0) may
// return NULL.
static inline void *room_for(size_t bytes) {
    void *room = malloc(bytes ? bytes : 1);
    require(room != NULL, "out of memory", NULL);
    return room;
}

#endif
