#include "vectors.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16, SEGMENTS = 256, RANKS = 64, PLANES = 8, ELEMENTS = 4096 };

// One case as it was read. Byte strings keep their length.
typedef struct bytes {
    size_t length;
    union {
        uint8_t at[4 * MOST];
        float floats[MOST];
    };
} bytes;

static struct {
    char codec[32];
    terse_codec_options options;
    size_t segments[SEGMENTS];
    size_t n, ranks, planes;
} vector;
static bytes hold, units, x, wire, scale, summed, before, sum, majority[2], plus, nonzero;  // majority: minus, plus
static uint8_t votes[RANKS][ELEMENTS / 8], planes[PLANES][ELEMENTS / 8];
static int absent[RANKS];
static long line_number, different;

void terse_golden_differs(const char *implementation, const char *what) {
    if (different++ < 20)
        printf("%s %s: %s is not the golden one, in the case that ends at line %ld\n", vector.codec, implementation,
               what, line_number);
}

// Sets *length to the number of bytes. 0 if the text is no hexadecimal, or more than there is room for.
static int hexadecimal(const char *text, uint8_t *to, size_t room, size_t *length) {
    *length = strlen(text) / 2;
    if (strlen(text) % 2 || *length > room || text[strspn(text, "0123456789abcdef")]) return 0;
    for (size_t i = 0; i < *length; i++) {
        const char byte[3] = {text[2 * i], text[2 * i + 1], 0};
        to[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return 1;
}

static int read_bytes(const char *text, bytes *to) { return hexadecimal(text, to->at, sizeof to->at, &to->length); }

static int read_segments(const char *text) {
    char *rest;
    vector.options.segment_count = strtoull(text, &rest, 10);
    vector.options.segments = vector.segments;
    if (vector.options.segment_count > SEGMENTS) return 0;
    for (size_t s = 0; s < vector.options.segment_count; s++) vector.segments[s] = strtoull(rest, &rest, 10);
    return !*rest;
}

static int read_rows(const char *text, uint8_t (*rows)[ELEMENTS / 8], size_t *count, size_t most) {
    size_t length;
    return *count < most && hexadecimal(text, rows[(*count)++], ELEMENTS / 8, &length) && length == (vector.n + 7) / 8;
}

static int understand(const char *word, const char *text) {
    terse_codec_options *o = &vector.options;
    const uint64_t number = strtoull(text, NULL, 10);
#define IS(name) if (!strcmp(word, name))
    IS("bits") return o->bits = (uint32_t)number, 1;
    IS("side") return o->side = (uint32_t)number, 1;
    IS("width") return o->width = (uint32_t)number, 1;
    IS("ranks") return o->ranks = (uint32_t)number, 1;
    IS("unscaled") return o->unscaled = (uint32_t)number, 1;
    IS("levels") return o->levels = (terse_levels)number, 1;
    IS("indices") return o->indices = (terse_indices)number, 1;
    IS("values") return o->values = (terse_values)number, 1;
    IS("dimensions") return o->dimensions = (uint32_t)number, 1;
    IS("block") return o->block = number, 1;
    IS("k") return o->k = number, 1;
    IS("clip") {
        const uint32_t bits = (uint32_t)number;
        return memcpy(&o->clip, &bits, 4), 1;
    }
    IS("segments") return read_segments(text);
    IS("zero") return o->zero = strcmp(text, "plus") ? TERSE_ZERO_MINUS : TERSE_ZERO_PLUS, 1;
    IS("hold") return o->hold = hold.at, read_bytes(text, &hold);
    IS("seed") return o->seed = number, 1;
    IS("step") return o->step = number, 1;
    IS("index") return o->index = number, 1;
    IS("units") return o->units = units.floats, read_bytes(text, &units) && (o->unit_count = units.length / 4, 1);
    IS("x") return read_bytes(text, &x);
    IS("wire") return read_bytes(text, &wire);
    IS("scale") return read_bytes(text, &scale) && scale.length == 4 && (o->scale = scale.floats[0], 1);
    IS("summed") return read_bytes(text, &summed);
    IS("before") return read_bytes(text, &before);
    IS("sum") return read_bytes(text, &sum);
    IS("n") return vector.n = number, number <= ELEMENTS;
    IS("absent") return vector.ranks < RANKS && (absent[vector.ranks++] = 1);
    IS("vote")
    return vector.ranks < RANKS && (absent[vector.ranks] = 0, 1) && read_rows(text, votes, &vector.ranks, RANKS);
    IS("plane") return read_rows(text, planes, &vector.planes, PLANES);
    IS("majority-minus") return read_bytes(text, &majority[0]);
    IS("majority-plus") return read_bytes(text, &majority[1]);
    IS("plus") return read_bytes(text, &plus);
    IS("nonzero") return read_bytes(text, &nonzero);
    return 0;
}

static long compare_codec(const terse_golden_by *by) {
    const terse_golden_codec golden = {
        vector.codec,
        vector.options,
        x.length / 4,
        wire.length,
        x.floats,
        wire.at,
        summed.length ? summed.at : wire.at,
        before.length ? before.floats : x.floats,
        sum.floats,
    };
    return by->codec(&golden);
}

static long compare_vote(const terse_golden_by *by) {
    const uint8_t *ranks[RANKS], *counts[PLANES];
    for (size_t r = 0; r < vector.ranks; r++) ranks[r] = absent[r] ? NULL : votes[r];
    for (size_t k = 0; k < vector.planes; k++) counts[k] = planes[k];
    const terse_golden_vote golden = {vector.n, vector.ranks, vector.planes, ranks, {majority[0].at, majority[1].at},
                                      plus.at,  nonzero.at,   counts};
    return by->vote(&golden);
}

static int is_whole(void) {
    const size_t length = (vector.n + 7) / 8;
    if (!strcmp(vector.codec, "vote"))
        return majority[0].length == length && majority[1].length == length && plus.length == length &&
               nonzero.length == length;
    return scale.length == 4 && x.length % 4 == 0 && x.length == sum.length &&
           (!summed.length || summed.length == wire.length) && (!before.length || before.length == x.length) &&
           (!vector.options.hold || hold.length == (x.length / 4 + 7) / 8);
}

long terse_check_vectors(FILE *from, const terse_golden_by *by) {
    static char line[8 * MOST + 64];
    long cases = 0, compared = 0;
    while (fgets(line, sizeof line, from)) {
        line_number++;
        line[strcspn(line, "\n")] = 0;
        char *text = strchr(line, ' ');
        if (text) *text++ = 0;
        if (!strcmp(line, "codec")) {
            memset(&vector, 0, sizeof vector);
            snprintf(vector.codec, sizeof vector.codec, "%s", text ? text : "");
            vector.options = (terse_codec_options)TERSE_CODEC_OPTIONS;
            bytes *const parts[] = {&hold,   &units, &x,           &wire,        &scale, &summed,
                                    &before, &sum,   &majority[0], &majority[1], &plus,  &nonzero};
            for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) parts[i]->length = 0;
        } else if (!strcmp(line, "done") && is_whole()) {
            const long implementations = strcmp(vector.codec, "vote") ? compare_codec(by) : compare_vote(by);
            if (implementations == 0) return printf("line %ld: there is no codec %s\n", line_number, vector.codec), -1;
            cases++, compared += implementations;
        } else if (!text || !understand(line, text)) {
            return printf("line %ld is not understood: %.60s\n", line_number, line), -1;
        }
    }
    printf("%ld golden cases, %ld comparisons, %ld different\n", cases, compared, different);
    return different;
}
