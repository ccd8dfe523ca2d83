#include <math.h>
#include <string.h>

#include "../../../packages/codecs/src/shared/scale-groups/scale_groups.h"
#include "targets.h"

typedef struct source {
    const uint8_t *at, *end;
} source;

static uint64_t take(source *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes && from->at < from->end; i++) value |= (uint64_t)*from->at++ << 8 * i;
    return value;
}

// Mostly 0 or a small number, as options are; sometimes any number.
static uint64_t some_number(source *from) {
    switch (take(from, 1) % 8) {
        case 0:
        case 1:
        case 2:
        case 3: return 0;
        case 4:
        case 5: return take(from, 1) % 17;
        case 6: return take(from, 2);
        default: return take(from, 8);
    }
}

// Mostly less than 80 elements, where kernels have their edges. Sometimes so many that a block of 512 ends among them.
static size_t some_length(source *from) {
    const size_t kind = take(from, 1);
    return kind < 240 ? kind % 80 : take(from, 2) % 1100;
}

static float some_float(source *from) {
    const uint32_t bits = (uint32_t)take(from, 4);
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

// The results of all calls of one implementation, to compare them with those of another.
typedef struct outcome {
    terse_codec_status encoded, fed_back, decoded, scaled;
    size_t bad, bad_fed_back, bad_scales;
    uint8_t *wire, *wire_fed_back;
    float *error, *sum, *scales;
} outcome;

static outcome run(const terse_codec *codec, size_t n, size_t bytes, const float *x, const uint8_t *any_wire,
                   const terse_codec_options *options) {
    enum { SENTINEL = 0xA5 };
    const size_t groups = terse_scale_group_count(n, options);
    outcome o = {.wire = room_for(bytes),
                 .wire_fed_back = room_for(bytes),
                 .error = room_for(n * 4),
                 .sum = room_for(n * 4),
                 .scales = room_for(groups * 4)};
    memset(o.wire, SENTINEL, bytes);
    memset(o.wire_fed_back, SENTINEL, bytes);
    for (size_t i = 0; i < n; i++) o.error[i] = 0.25f, o.sum[i] = 0.5f;

    o.encoded = terse_codec_encode(codec, o.wire, bytes, x, n, options, &o.bad);
    const int refused = o.encoded == TERSE_CODEC_NOT_FINITE || o.encoded == TERSE_CODEC_DOES_NOT_FIT;
    if (refused) {
        require(o.bad < n && !isfinite(x[o.bad]) == (o.encoded == TERSE_CODEC_NOT_FINITE),
                "a wrong index or a wrong reason", codec);
        memset(o.wire, 0, bytes);  // undefined
    } else if (o.encoded == TERSE_CODEC_OK) {
        const terse_codec_status back = terse_codec_decode_add(codec, o.sum, n, o.wire, bytes, options);
        require(back == TERSE_CODEC_OK || back == TERSE_CODEC_BAD_SCALE, "its own wire is refused", codec);
    } else {
        for (size_t i = 0; i < bytes; i++) require(o.wire[i] == SENTINEL, "a refused call wrote to the wire", codec);
    }

    o.fed_back = terse_codec_encode_with_feedback(codec, o.wire_fed_back, bytes, x, o.error, n, options,
                                                  &o.bad_fed_back);
    if (o.fed_back == TERSE_CODEC_NOT_FINITE || o.fed_back == TERSE_CODEC_DOES_NOT_FIT)
        memset(o.wire_fed_back, 0, bytes);
    o.scaled = terse_codec_scales(codec, o.scales, groups, x, n, options, &o.bad_scales);
    if (o.scaled != TERSE_CODEC_OK) memset(o.scales, 0, groups * sizeof *o.scales);
    o.decoded = terse_codec_decode_add(codec, o.sum, n, any_wire, bytes, options);
    require(o.decoded == TERSE_CODEC_OK || o.decoded == TERSE_CODEC_BAD_WIRE || o.decoded == TERSE_CODEC_BAD_SCALE,
            "the wire has the right length", codec);
    return o;
}

static void clear(outcome *o) { free(o->wire), free(o->wire_fed_back), free(o->error), free(o->sum), free(o->scales); }

// Bit for bit, but any NaN equals any other: infinities may meet in a sum, and no rule says which operand's NaN
// survives.
static int same_floats(const float *a, const float *b, size_t n) {
    if (!memcmp(a, b, n * sizeof *a)) return 1;
    for (size_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) && (a[i] == a[i] || b[i] == b[i])) return 0;
    return 1;
}

static void compare(const terse_codec *codec, const outcome *a, const outcome *b, size_t n, size_t bytes,
                    size_t groups) {
    require(
        a->encoded == b->encoded && a->fed_back == b->fed_back && a->decoded == b->decoded && a->scaled == b->scaled,
        "another status than the first implementation's", codec);
    const int refused = a->encoded == TERSE_CODEC_NOT_FINITE || a->encoded == TERSE_CODEC_DOES_NOT_FIT;
    require(!refused || a->bad == b->bad, "another index than the first implementation's", codec);
    require(!memcmp(a->wire, b->wire, bytes) && !memcmp(a->wire_fed_back, b->wire_fed_back, bytes),
            "another wire than the first implementation's", codec);
    const int no_scales = a->scaled == TERSE_CODEC_NOT_FINITE || a->scaled == TERSE_CODEC_DOES_NOT_FIT;
    require(!no_scales || a->bad_scales == b->bad_scales, "another index than the first implementation's", codec);
    require(!memcmp(a->scales, b->scales, groups * sizeof *a->scales), "other scales than the first implementation's",
            codec);
    require(same_floats(a->error, b->error, n), "another error than the first implementation's", codec);
    require(same_floats(a->sum, b->sum, n), "other sums than the first implementation's", codec);
}

void fuzz_options(const uint8_t *bytes, size_t size) {
    source from = {bytes, bytes + size};
    static const terse_codec *all[256];
    static size_t codecs;
    while (codecs < sizeof all / sizeof *all && (all[codecs] = terse_codec_at(codecs))) codecs++;
    const terse_codec *first = all[take(&from, 1) % codecs];
    const size_t n = some_length(&from);

    terse_codec_options options = TERSE_CODEC_OPTIONS;
    options.size += some_number(&from) == 1;
    options.bits = (uint32_t)some_number(&from);
    options.width = (uint32_t)some_number(&from);
    options.ranks = (uint32_t)some_number(&from);
    options.unscaled = (uint32_t)some_number(&from);
    options.levels = (terse_levels)some_number(&from);
    options.dimensions = (uint32_t)some_number(&from);
    options.side = take(&from, 1) % 4 ? 0 : (uint32_t)some_number(&from);
    options.block = some_number(&from);
    if (options.block > 128 && take(&from, 1) % 16) options.block %= 129;  // a transform takes the square of its length
    options.k = some_number(&from);
    options.indices = (terse_indices)(take(&from, 1) % 4 ? 0 : some_number(&from));
    options.values = (terse_values)(take(&from, 1) % 4 ? 0 : some_number(&from));
    options.clip = take(&from, 1) % 4 ? 0 : some_float(&from);
    options.zero = take(&from, 1) % 4;
    options.seed = take(&from, 8);
    options.step = take(&from, 2);
    options.index = some_number(&from) * (take(&from, 1) % 8 ? 64 : 1);
    options.scale = take(&from, 1) % 4 ? 0.3f : some_float(&from);
    options.decay = take(&from, 1) % 4 ? 0.95f : some_float(&from);
    uint8_t *hold = NULL;
    if (take(&from, 1) % 4 == 0) {
        hold = room_for((n + 7) / 8);
        for (size_t i = 0; i < (n + 7) / 8; i++) hold[i] = (uint8_t)take(&from, 1);
        options.hold = hold;
    }
    size_t *segments = NULL;
    if (take(&from, 1) % 4 == 0) {
        options.segment_count = take(&from, 1) % 16;
        segments = room_for(options.segment_count * sizeof *segments);
        for (size_t s = 0; s < options.segment_count; s++)
            segments[s] = (s ? segments[s - 1] : 0) + take(&from, 1) % 64;
        if (options.segment_count && take(&from, 1) % 8) {
            segments[options.segment_count - 1] = n;
            for (size_t s = 0; s < options.segment_count; s++)
                if (segments[s] > n) segments[s] = n;
        }
        options.segments = segments;
    }

    float *units = NULL;
    if (take(&from, 1) % 4 == 0) {
        options.unit_count = take(&from, 1) % 8 ? terse_scale_group_count(n, &options) : take(&from, 1) % 16;
        units = room_for(options.unit_count * sizeof *units);
        const int small = take(&from, 1) % 4 != 0;
        for (size_t r = 0; r < options.unit_count; r++)
            units[r] = small ? 0x1p-9f * (float)take(&from, 1) : some_float(&from);
        options.units = units;
    }

    size_t length = 0;
    const size_t any_n = take(&from, 1) % 2 ? take(&from, 8) : some_number(&from);
    if (terse_codec_wire_bytes(first, any_n, &options, &length) == TERSE_CODEC_OK)
        require(length / 72 <= any_n + options.segment_count + 8, "more bytes than so many floats can take", first);
    if (terse_codec_wire_bytes(first, n, &options, &length) != TERSE_CODEC_OK) goto done;
    require(length / 72 <= n + options.segment_count + 8, "more bytes than so many floats can take", first);

    float *x = room_for(n * sizeof *x);
    uint8_t *wire = room_for(length);
    const int kind = (int)(take(&from, 1) % 4);
    const uint8_t *again = from.at;
    for (size_t i = 0; i < n; i++) {
        if (from.at == from.end) from.at = again;
        if (kind == 0) x[i] = some_float(&from);
        else x[i] = (float)(int8_t)take(&from, 1) * (kind == 1 ? 1.0f : kind == 2 ? 0x1p-9f : 0x1p120f);
    }
    for (size_t i = 0; i < length; i++) {
        if (from.at == from.end) from.at = again;
        wire[i] = (uint8_t)take(&from, 1);
    }
    outcome expected = run(first, n, length, x, wire, &options);
    for (size_t i = 0; i < codecs; i++) {
        const terse_codec *codec = all[i];
        if (codec == first || strcmp(codec->name, first->name)) continue;
        outcome other = run(codec, n, length, x, wire, &options);
        compare(codec, &expected, &other, n, length, terse_scale_group_count(n, &options));
        clear(&other);
    }
    clear(&expected);
    free(x);
    free(wire);
done:
    free(hold);
    free(segments);
    free(units);
}
