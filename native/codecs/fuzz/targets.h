// What the fuzzers and codecs_mutate feed. Each takes any bytes; what must never be is an abort with a sentence.
#ifndef TERSE_FUZZ_TARGETS_H
#define TERSE_FUZZ_TARGETS_H
#include <stdio.h>
#include <stdlib.h>

#include "terse/codecs.h"

// Reads the bytes as a frame, decodes its wire with every implementation of its codec, and writes the frame anew.
terse_codec_status read_and_use(const uint8_t *bytes, size_t size);

// The same, and what came of it; and once more with a checksum that fits, if the bytes are a frame but for that.
terse_codec_status fuzz_frame(const uint8_t *bytes, size_t size);

// Takes a codec, its options, floats and a wire from the bytes, and makes every call with every implementation.
void fuzz_options(const uint8_t *bytes, size_t size);

// Gives the frame that the header's lengths describe the checksum of its bytes. 0 if they lead out of it.
int seal(uint8_t *bytes, size_t size);

static inline void require(int good, const char *what, const terse_codec *codec) {
    if (good) return;
    fprintf(stderr, "%s %s: %s\n", codec ? codec->name : "frame", codec ? codec->implementation : "", what);
    abort();
}

// Exactly so many bytes, so that a step too far is seen; one where there are none, since malloc may return NULL for
// those.
static inline void *room_for(size_t bytes) {
    void *room = malloc(bytes ? bytes : 1);
    require(room != NULL, "out of memory", NULL);
    return room;
}

#endif
