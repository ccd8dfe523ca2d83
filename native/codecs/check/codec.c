// Compares an implementation of a codec with its scalar one. They give the same bytes, the same sums and the same first
// bad element, and write nothing outside the arrays, for every length, alignment and order of pages.
#include "codec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../../packages/codecs/src/shared/scale-groups/scale_groups.h"
#include "terse/walk.h"

enum { MAX = 8400, WIRE = MAX * 8 + 80, MARGIN = 40 };

static float x_room[MAX + 2 * MARGIN], sum_room[2][MAX + 2 * MARGIN], error_room[2][MAX];
static uint8_t wire_room[2][WIRE + 2 * MARGIN];

static terse_codec_status decode_part(const terse_codec *codec, float *sum, const uint8_t *wire, size_t n,
                                      const terse_codec_options *o, size_t begin, size_t end) {
    if (codec->is_good && !codec->is_good(wire, n, o, begin, end)) return TERSE_CODEC_BAD_WIRE;
    return codec->decode_add(sum, wire, n, o, begin, end);
}

void check_codec(const terse_codec *codec, const terse_codec *scalar, const configuration *c) {
    const char *by = codec->implementation;
    char name[80];
    snprintf(name, sizeof name, "%s, %s,", codec->name, c->how);
    for (size_t l = 0; l < length_count; l++) {
        if (lengths[l] < c->least) continue;
        // The plain C is what all others are compared with. By itself it shows only what its parts and its refusals do.
        if (codec == scalar && (lengths[l] > 4200 || (lengths[l] > 17 && l % 3))) continue;
        for (int kind = 0; kind < 3; kind++) {
            // Transforms are slow, so each long one is checked with one kind of numbers only.
            if (codec->takes & TERSE_TAKES_DIMENSIONS && lengths[l] > 300 && l % 3 != (size_t)kind) continue;
            terse_walk_use(random_word() % 2 ? 1 : 4, 1);
            terse_codec_options options = options_of(c, lengths[l]);
            size_t n = lengths[l];
            if (options.dimensions == 2) n -= n % (options.block * options.block);  // whole squares only
            options.scale = kind == 1 ? 1.0f : 0.3f;
            // The wire may start at any byte, the floats at any multiple of 4 bytes.
            const size_t shift = random_word() % 32;
            float *x = x_room + shift;
            uint8_t *wire = wire_room[0] + shift, *expected = wire_room[1] + shift;
            float (*const number)(void) = c->number ? c->number : any_float;
            for (size_t i = 0; i < n; i++) x[i] = kind == 0 ? i % 2 ? 0.0f : -0.0f : number();

            size_t bytes = 0, scalar_bytes = 0, bad, scalar_bad;
            expect(terse_codec_wire_bytes(codec, n, &options, &bytes) == TERSE_CODEC_OK &&
                       terse_codec_wire_bytes(scalar, n, &options, &scalar_bytes) == TERSE_CODEC_OK &&
                       bytes == scalar_bytes && bytes <= WIRE,
                   name, by, n, "bytes for n floats");
            if (bytes > WIRE) return;

            // A room is much longer than most wires. So stray writes are looked for in the whole rooms once for each
            // length, and then only near the arrays.
            const size_t near = shift + bytes + MARGIN, wires = kind == 0 ? sizeof *wire_room : near,
                         sums = kind == 0 ? sizeof *sum_room : 4 * (n + 2 * MARGIN);
            for (int side = 0; side < 2; side++) memset(wire_room[side], SENTINEL, wires);
            bad = scalar_bad = n;
            const terse_codec_status encoded = terse_codec_encode(scalar, expected, bytes, x, n, &options, &scalar_bad);
            expect(terse_codec_encode(codec, wire, bytes, x, n, &options, &bad) == encoded && bad == scalar_bad, name,
                   by, n, "encode");
            expect(encoded == TERSE_CODEC_OK || c->refuses, name, by, n, "numbers that it can write");
            if (encoded != TERSE_CODEC_OK) continue;
            expect(!memcmp(wire_room[0], wire_room[1], wires), name, by, n, "wire bytes, or bytes outside the wire");

            static float scales_room[MAX];
            const size_t groups = terse_scale_group_count(n, &options);
            if (codec->scales && !options.unscaled) {
                expect(terse_codec_scales(codec, scales_room, groups, x, n, &options, &bad) == TERSE_CODEC_OK &&
                           !memcmp(scales_room, wire, 4 * groups),
                       name, by, n, "scales");
            }

            // Encodes in parts, as threads do.
            if (!codec->whole && n > 64) {
                memset(wire_room[0], SENTINEL, near);
                const size_t cut = random_word() % n / 64 * 64;
                expect(!codec->prepare || codec->prepare(wire, x, n, &options) == n, name, by, n, "prepare");
                expect(codec->encode(wire, x, n, &options, cut, n) == n &&
                           codec->encode(wire, x, n, &options, 0, cut) == cut,
                       name, by, n, "encode in parts");
                expect(!memcmp(wire_room[0], wire_room[1], near), name, by, n, "wire bytes when encoded in parts");
            }

            if (codec->measure && groups == 1 && !options.unscaled && !options.hold && !options.block) {
                memset(wire_room[0], SENTINEL, near);
                const double measure = codec->measure(wire, x, n, &options, 0, n);
                expect(codec->prepare_measured(wire, x, n, &options, &measure) == n &&
                           codec->encode(wire, x, n, &options, 0, n) == n,
                       name, by, n, "measure");
                expect(!memcmp(wire_room[0], wire_room[1], near), name, by, n, "wire bytes when measured");
            }

            for (int any = 0; any < 2; any++) {
                if (any) random_bytes(wire, bytes), memcpy(expected, wire, bytes);  // decoding must agree on any bytes
                for (size_t i = 0; i < n + 2 * MARGIN; i++) sum_room[0][i] = sum_room[1][i] = any_float() * 0.25f;
                const terse_codec_status status = terse_codec_decode_add(scalar, sum_room[1] + shift, n, expected,
                                                                         bytes, &options);
                if (codec->whole || random_word() % 2) {
                    expect(terse_codec_decode_add(codec, sum_room[0] + shift, n, wire, bytes, &options) == status, name,
                           by, n, "decode_add's status");
                } else {
                    const size_t cut = n ? random_word() % n / 64 * 64 : 0;
                    const terse_codec_status first = decode_part(codec, sum_room[0] + shift, wire, n, &options, 0, cut);
                    const terse_codec_status second = decode_part(codec, sum_room[0] + shift, wire, n, &options, cut,
                                                                  n);
                    expect(
                        (first == TERSE_CODEC_OK && second == TERSE_CODEC_OK) == (status == TERSE_CODEC_OK) || cut == 0,
                        name, by, n, "decode_add's status, in parts");
                    if (status != TERSE_CODEC_OK) {  // the good part may already be in the sums
                        memcpy(sum_room[0], sum_room[1], sizeof *sum_room);
                        continue;
                    }
                }
                expect(!memcmp(sum_room[0], sum_room[1], sums), name, by, n, "decoded sums, or floats outside them");
                expect(any || status == TERSE_CODEC_OK, name, by, n, "its own wire is good");
                if (status != TERSE_CODEC_OK) continue;

                float *const decoded = sum_room[0] + shift, *const added = sum_room[1] + shift;
                if (n) memset(added, 0, 4 * n);
                terse_codec_decode_add(scalar, added, n, expected, bytes, &options);
                expect(terse_codec_decode(codec, decoded, n, wire, bytes, &options) == TERSE_CODEC_OK &&
                           !memcmp(sum_room[0], sum_room[1], sums),
                       name, by, n, "decoded floats, or floats outside them");
            }

            for (int side = 0; side < 2; side++) memset(error_room[side], 0, 4 * (n + MARGIN));
            for (int side = 0; side < 2; side++)
                for (int step = 0; step < 2; step++)
                    terse_codec_encode_with_feedback(side ? scalar : codec, wire_room[side] + shift, bytes, x,
                                                     error_room[side], n, &options, &bad);
            expect(!memcmp(error_room[0], error_room[1], 4 * (n + MARGIN)), name, by, n, "error feedback");

            // One bad element, sometimes a second one after it. In long vectors each is tried with one kind of numbers
            // only, and so are the numbers below.
            for (int trial = 0; n && trial < 4; trial++) {
                if (n > 4000 && trial % 3 != kind) continue;
                static const float worst[] = {NAN, -NAN, INFINITY, -INFINITY};
                const size_t first = random_word() % n, second = first + random_word() % (n - first);
                const float kept[2] = {x[first], x[second]};
                x[second] = worst[(trial + 1) % 4];
                x[first] = worst[trial];
                bad = scalar_bad = n;
                expect(terse_codec_encode(codec, wire, bytes, x, n, &options, &bad) == TERSE_CODEC_NOT_FINITE &&
                           bad == first,
                       name, by, n, "index of the first bad element");
                expect(terse_codec_encode(scalar, expected, bytes, x, n, &options, &scalar_bad) ==
                               TERSE_CODEC_NOT_FINITE &&
                           scalar_bad == first,
                       name, by, n, "scalar's index of the first bad element");
                x[second] = kept[1];
                x[first] = kept[0];
            }

            // Numbers that not every codec can write: fractions, some beyond the levels of 2 or 8 bits, the largest
            // floats.
            for (int trial = 0; n && trial < 8; trial++) {
                if (n > 4000 && trial % 3 != kind) continue;
                static const float odd[] = {
                    0.5f, -0.25f, 2.0f, -128.0f, 1.5f, -127.5f, 0x1.fffffep127f, -0x1.fffffep127f};
                const size_t at = random_word() % n;
                const float kept = x[at];
                x[at] = odd[trial];
                bad = scalar_bad = n;
                for (int side = 0; side < 2; side++) memset(wire_room[side], SENTINEL, near);
                const terse_codec_status status = terse_codec_encode(codec, wire, bytes, x, n, &options, &bad);
                expect(status == terse_codec_encode(scalar, expected, bytes, x, n, &options, &scalar_bad) &&
                           bad == scalar_bad,
                       name, by, n, "what does not fit");
                expect(status != TERSE_CODEC_OK || !memcmp(wire_room[0], wire_room[1], near), name, by, n,
                       "wire bytes beside an odd number");
                x[at] = kept;
            }
        }
    }
}

void check_refusals(const terse_codec *codec, const configuration *c) {
    const char *name = codec->name, *by = codec->implementation;
    enum { N = 128 };
    static const uint8_t mask[N / 8];
    static const size_t early[] = {N / 3, N - 1}, ends[] = {N / 3, N};
    terse_codec_options good = options_of(c, N), o;
    if (good.dimensions == 2) good.block = 8, good.k = 5;  // N floats are two squares
    terse_codec_options alone = good;                      // all floats are one scale group
    alone.block = 0, alone.segments = NULL, alone.segment_count = 0, alone.units = NULL;
    alone.levels = TERSE_LEVELS_UNIFORM;
    size_t bytes = 0;
    float *x = x_room;
    uint8_t *wire = wire_room[0];
    for (size_t i = 0; i < N; i++) x[i] = 1.0f;
    expect(terse_codec_wire_bytes(codec, N, &good, &bytes) == TERSE_CODEC_OK, name, by, N, "good options");
#define REFUSES(status, call, what) expect((call) == (status), name, by, N, what)
#define ENCODE_REFUSES(status, options, what) \
    REFUSES(status, terse_codec_encode(codec, wire, bytes, x, N, options, NULL), what)
    REFUSES(TERSE_CODEC_BAD_LENGTH, terse_codec_encode(codec, wire, bytes + 1, x, N, &good, NULL), "a wire too long");
    REFUSES(TERSE_CODEC_BAD_LENGTH, terse_codec_decode_add(codec, x, N, wire, bytes - 1, &good), "a wire too short");
    REFUSES(TERSE_CODEC_OVERLAP, terse_codec_encode(codec, (uint8_t *)x + 4, bytes, x, N, &good, NULL),
            "a wire inside the floats");
    REFUSES(TERSE_CODEC_OVERLAP, terse_codec_decode_add(codec, x, N, (uint8_t *)(x + N) - 1, bytes, &good),
            "a wire that begins in the last float");
    REFUSES(TERSE_CODEC_OVERLAP, terse_codec_encode_with_feedback(codec, wire, bytes, x, x + 1, N, &good, NULL),
            "an error inside the floats");
    if (codec->takes & TERSE_TAKES_HOLD) {
        o = good, o.hold = (const uint8_t *)(x + N) - 1;
        REFUSES(TERSE_CODEC_OVERLAP, terse_codec_decode_add(codec, x, N, wire, bytes, &o), "a mask in the sums");
        REFUSES(TERSE_CODEC_OVERLAP, terse_codec_encode_with_feedback(codec, wire, bytes, x + N, x, N, &o, NULL),
                "a mask in the error");
        o.hold = wire + bytes - 1;
        ENCODE_REFUSES(TERSE_CODEC_OVERLAP, &o, "a mask in the wire");
    }
    REFUSES(TERSE_CODEC_MISALIGNED,
            terse_codec_encode_with_feedback(codec, wire, bytes, (float *)((uint8_t *)(x + N) + 1), x, N, &good, NULL),
            "floats beside a float");
    REFUSES(TERSE_CODEC_MISALIGNED, terse_codec_decode_add(codec, (float *)((uint8_t *)x + 1), N, wire, bytes, &good),
            "sums beside a float");
    REFUSES(TERSE_CODEC_MISALIGNED, terse_codec_encode(codec, wire, bytes, (float *)((uint8_t *)x + 2), N, &good, NULL),
            "floats at half a float");
    o = good, o.size--;
    ENCODE_REFUSES(TERSE_CODEC_BAD_ABI, &o, "options of another version");
    o = good, o.scale = INFINITY;
    REFUSES(TERSE_CODEC_BAD_SCALE, terse_codec_decode_add(codec, x, N, wire, bytes, &o), "an infinite scale");
    static const float no_decays[] = {0, -0.5f, 1.5f, INFINITY, NAN};
    for (size_t i = 0; i < sizeof no_decays / sizeof *no_decays; i++) {
        o = good, o.decay = no_decays[i];
        REFUSES(TERSE_CODEC_BAD_DECAY, terse_codec_encode_with_feedback(codec, wire, bytes, x + N, x, N, &o, NULL),
                "a decay outside of its range");
    }
    if (codec->takes & TERSE_TAKES_ZERO) {
        o = good, o.zero = TERSE_ZERO_UNSET;
        ENCODE_REFUSES(TERSE_CODEC_BAD_ZERO, &o, "a zero that is not set");
    }
    if (codec->takes & TERSE_TAKES_RANDOM) {
        o = good, o.index = 32;
        ENCODE_REFUSES(TERSE_CODEC_BAD_INDEX, &o, "an index of half a word");
    }
    if (codec->takes & TERSE_TAKES_SEGMENTS) {
        o = good, o.block = 0, o.segments = early, o.segment_count = 2;
        ENCODE_REFUSES(TERSE_CODEC_BAD_SCALE_GROUPS, &o, "segments that end early");
        o.segments = ends, o.block = 7;
        ENCODE_REFUSES(TERSE_CODEC_BAD_SCALE_GROUPS, &o, "segments and blocks");
    }
    if (codec->takes & TERSE_TAKES_FIELDS) {
        // The sum of 255 / levels ranks fits a field of 8 bits; that of one rank more does not.
        const uint32_t bits = codec->takes & TERSE_TAKES_BITS ? 4 : 0, levels = bits ? 15 : 1;
        o = alone, o.bits = bits, o.side = 0;
        o.unscaled = codec->takes & TERSE_TAKES_UNSCALED ? 1 : 0, o.width = 8, o.ranks = 255 / levels;
        size_t room = 0;
        REFUSES(TERSE_CODEC_OK, terse_codec_wire_bytes(codec, N, &o, &room), "as many ranks as a field holds");
        o.ranks++;
        REFUSES(TERSE_CODEC_TOO_MANY_RANKS, terse_codec_encode(codec, wire, room, x, N, &o, NULL),
                "a rank too many for the field");
        REFUSES(TERSE_CODEC_TOO_MANY_RANKS, terse_codec_decode_add(codec, x, N, wire, room, &o),
                "the sum of a rank too many");
        if (codec->takes & TERSE_TAKES_SIDE) {
            o.side = 7, o.ranks = 18;  // 18 * 14 = 252
            REFUSES(TERSE_CODEC_OK, terse_codec_wire_bytes(codec, N, &o, &room),
                    "as many ranks of 7 levels a side as a field holds");
            o.ranks++;
            REFUSES(TERSE_CODEC_TOO_MANY_RANKS, terse_codec_wire_bytes(codec, N, &o, &room),
                    "a rank of 7 levels a side too many");
            o.side = 8;
            REFUSES(TERSE_CODEC_BAD_CHOICE, terse_codec_wire_bytes(codec, N, &o, &room),
                    "more levels a side than bits hold");
        }
    }
    if (codec->takes & TERSE_TAKES_K) {
        o = good, o.k = 0;
        ENCODE_REFUSES(TERSE_CODEC_BAD_K, &o, "k of 0");
        o.k = (size_t)1 << 40;
        ENCODE_REFUSES(TERSE_CODEC_BAD_K, &o, "k beyond all there is");
    }
    if (codec->takes & TERSE_TAKES_INDICES) {
        o = good, o.indices = (terse_indices)2;
        ENCODE_REFUSES(TERSE_CODEC_BAD_CHOICE, &o, "indices of no kind");
    }
    if (codec->takes & TERSE_TAKES_VALUES) {
        o = good, o.values = (terse_values)4;
        ENCODE_REFUSES(TERSE_CODEC_BAD_CHOICE, &o, "values of no kind");
    }
    if (codec->takes & TERSE_TAKES_DIMENSIONS) {
        static const struct {
            uint32_t dimensions;
            size_t block;
            terse_codec_status status;
        } wrong[] = {
            {1, 0, TERSE_CODEC_BAD_CHOICE}, {0, 4097, TERSE_CODEC_BAD_CHOICE},    {2, 129, TERSE_CODEC_BAD_CHOICE},
            {3, 8, TERSE_CODEC_BAD_CHOICE}, {2, 9, TERSE_CODEC_BAD_SCALE_GROUPS},
        };
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            o = good, o.k = 1, o.dimensions = wrong[w].dimensions, o.block = wrong[w].block;
            ENCODE_REFUSES(wrong[w].status, &o, "chunks that there are not");
        }
    }
    if (codec->takes & TERSE_TAKES_UNSCALED) {
        const float unit = 1.0f, negative = -1.0f, too_large = 0x1p127f;
        o = alone, o.unscaled = 1, o.units = &unit, o.unit_count = 1;
        size_t needed = 0;
        REFUSES(TERSE_CODEC_OK, terse_codec_wire_bytes(codec, N, &o, &needed), "a unit");
        o.unit_count = 2;
        REFUSES(TERSE_CODEC_BAD_SCALE_GROUPS, terse_codec_encode(codec, wire, needed, x, N, &o, NULL),
                "more units than scale groups");
        o.unit_count = 1, o.units = &negative;
        REFUSES(TERSE_CODEC_BAD_SCALE, terse_codec_encode(codec, wire, needed, x, N, &o, NULL), "a negative unit");
        o.units = &too_large;
        REFUSES(TERSE_CODEC_BAD_SCALE, terse_codec_decode_add(codec, x, N, wire, needed, &o), "a unit too large");
        o.units = &unit, o.unscaled = 0, o.ranks = 0;
        ENCODE_REFUSES(TERSE_CODEC_BAD_CHOICE, &o, "units beside scales");
    }
    if (codec->scales) {
        float scales[N];
        o = alone, o.levels = good.levels;
        REFUSES(TERSE_CODEC_BAD_LENGTH, terse_codec_scales(codec, scales, 2, x, N, &o, NULL),
                "scales for more scale groups than there are");
        x[77] = NAN;
        size_t first = 0;
        REFUSES(TERSE_CODEC_NOT_FINITE, terse_codec_scales(codec, scales, 1, x, N, &o, &first), "NaN, in scales");
        expect(first == 77, name, by, N, "the first NaN, in scales");
        x[77] = 1.0f;
    } else {
        REFUSES(TERSE_CODEC_NOT_TAKEN, terse_codec_scales(codec, x, 0, x, N, &good, NULL),
                "scales of a codec that has none");
    }
#define NOT_TAKEN(flag, member, value)                                           \
    if (!(codec->takes & (flag))) {                                              \
        o = good, o.member = (value);                                            \
        ENCODE_REFUSES(TERSE_CODEC_NOT_TAKEN, &o, "an option it does not take"); \
    }
    NOT_TAKEN(TERSE_TAKES_HOLD, hold, mask)
    NOT_TAKEN(TERSE_TAKES_BLOCK, block, 64)
    NOT_TAKEN(TERSE_TAKES_SEGMENTS, segments, ends)
    NOT_TAKEN(TERSE_TAKES_BITS, bits, 4)
    NOT_TAKEN(TERSE_TAKES_FIELDS, width, 8)
    NOT_TAKEN(TERSE_TAKES_FIELDS, ranks, 2)
    NOT_TAKEN(TERSE_TAKES_UNSCALED, unscaled, 1)
    NOT_TAKEN(TERSE_TAKES_LEVELS, levels, TERSE_LEVELS_LOGARITHMIC)
    NOT_TAKEN(TERSE_TAKES_DIMENSIONS, dimensions, 2)
    NOT_TAKEN(TERSE_TAKES_K, k, 1)
    NOT_TAKEN(TERSE_TAKES_CLIP, clip, 2.5f)
    NOT_TAKEN(TERSE_TAKES_INDICES, indices, TERSE_INDICES_ELIAS_FANO)
    NOT_TAKEN(TERSE_TAKES_VALUES, values, TERSE_VALUES_F16)
}
