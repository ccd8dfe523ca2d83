// Frames: docs/wire-formats.md has the picture. What is read is hostile: every length is checked before it is used.
#include <string.h>

#include "../../packages/codecs/src/shared/overlap.h"
#include "crc32c.h"
#include "terse/codecs.h"

enum {
    MAGIC = 0,
    VERSION = 4,
    NAME = 8,
    N = 24,
    BITS = 32,
    SIDE = 34,
    WIDTH = 36,
    RANKS = 40,
    UNSCALED = 44,
    INDICES = 46,
    VALUES = 47,
    LEVELS = 48,
    DIMENSIONS = 52,
    BLOCK = 56,
    K = 64,
    CLIP = 72,
    SEGMENT_COUNT = 76,
    WIRE_BYTES = 80,
    SEGMENTS = 88,
    NAME_BYTES = N - NAME,
    CHECKSUM_BYTES = 4,
};
static const char magic[4] = {'T', 'E', 'R', 'S'};

// The most elements of a vector; a field that counts elements cannot be larger.
static const uint64_t most = (uint64_t)1 << 48;

static void put_32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static void put_16(uint8_t *at, uint32_t value) { at[0] = (uint8_t)value, at[1] = (uint8_t)(value >> 8); }

static void put_64(uint8_t *at, uint64_t value) {
    put_32(at, (uint32_t)value), put_32(at + 4, (uint32_t)(value >> 32));
}

static uint32_t get_16(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }

static uint32_t get_32(const uint8_t *at) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static uint64_t get_64(const uint8_t *at) { return get_32(at) | (uint64_t)get_32(at + 4) << 32; }

static uint32_t clip_bits(const terse_codec_options *o) {
    uint32_t bits;
    memcpy(&bits, &o->clip, 4);
    return o->clip == 0 ? 0 : bits;  // -0.0 is no clipping either
}

// Refuses options for which a header has no room or no code, and options that no codec gives.
static terse_codec_status check_options(const terse_codec_options *o) {
    if (o->indices > TERSE_INDICES_ELIAS_FANO || o->values > TERSE_VALUES_SIGN) return TERSE_CODEC_BAD_CHOICE;
    if (o->levels > TERSE_LEVELS_LOGARITHMIC || clip_bits(o) >= 0x7F800000) return TERSE_CODEC_BAD_CHOICE;
    if (o->block > most || o->segment_count > UINT32_MAX) return TERSE_CODEC_BAD_SCALE_GROUPS;
    return o->k > most ? TERSE_CODEC_BAD_K : TERSE_CODEC_OK;
}

static terse_codec_status sizes_of(const terse_codec *codec, size_t n, const terse_codec_options *o, size_t *wire_at,
                                   size_t *wire_bytes, size_t *bytes) {
    const terse_codec_status status = terse_codec_wire_bytes(codec, n, o, wire_bytes);
    if (status != TERSE_CODEC_OK) return status;
    const terse_codec_status options_status = check_options(o);
    if (options_status != TERSE_CODEC_OK) return options_status;
    *wire_at = SEGMENTS + 8 * o->segment_count;
    *bytes = *wire_at + *wire_bytes + CHECKSUM_BYTES;
    return TERSE_CODEC_OK;
}

terse_codec_status terse_frame_bytes(const terse_codec *codec, size_t n, const terse_codec_options *o, size_t *bytes,
                                     size_t *wire_at) {
    size_t at, wire_bytes;
    const terse_codec_status status = sizes_of(codec, n, o, &at, &wire_bytes, bytes);
    if (status == TERSE_CODEC_OK && wire_at) *wire_at = at;
    return status;
}

terse_codec_status terse_frame_write(const terse_codec *codec, uint8_t *frame, size_t frame_bytes, const uint8_t *wire,
                                     size_t wire_bytes, size_t n, const terse_codec_options *o) {
    size_t wire_at, expected_wire, expected;
    const terse_codec_status status = sizes_of(codec, n, o, &wire_at, &expected_wire, &expected);
    if (status != TERSE_CODEC_OK) return status;
    if (wire_bytes != expected_wire || frame_bytes != expected) return TERSE_CODEC_BAD_LENGTH;
    if (wire != frame + wire_at) {
        if (terse_overlap(frame, frame_bytes, wire, wire_bytes)) return TERSE_CODEC_OVERLAP;
        if (wire_bytes) memcpy(frame + wire_at, wire, wire_bytes);
    }
    memset(frame, 0, SEGMENTS);
    memcpy(frame + MAGIC, magic, sizeof magic);
    put_32(frame + VERSION, TERSE_FRAME_VERSION);
    memcpy(frame + NAME, codec->name, strlen(codec->name));
    put_64(frame + N, n);
    put_16(frame + BITS, o->bits);
    put_16(frame + SIDE, o->side);
    put_32(frame + WIDTH, o->width);
    put_32(frame + RANKS, o->ranks == 1 ? 0 : o->ranks);  // one meaning, one frame
    put_16(frame + UNSCALED, o->unscaled != 0);
    frame[INDICES] = (uint8_t)o->indices, frame[VALUES] = (uint8_t)o->values;
    put_32(frame + LEVELS, o->levels);
    put_32(frame + DIMENSIONS, o->dimensions);
    put_64(frame + BLOCK, o->block);
    put_64(frame + K, o->k);
    put_32(frame + CLIP, clip_bits(o));
    put_32(frame + SEGMENT_COUNT, (uint32_t)o->segment_count);
    put_64(frame + WIRE_BYTES, wire_bytes);
    for (size_t s = 0; s < o->segment_count; s++) put_64(frame + SEGMENTS + 8 * s, o->segments[s]);
    put_32(frame + wire_at + wire_bytes, terse_crc32c(frame, wire_at + wire_bytes));
    return TERSE_CODEC_OK;
}

// At least one letter, and nothing but zeros from the first zero on.
static int name_is_good(const uint8_t *name) {
    size_t letters = 0;
    while (letters < NAME_BYTES && name[letters]) letters++;
    if (letters == 0 || letters == NAME_BYTES) return 0;
    for (size_t i = letters; i < NAME_BYTES; i++)
        if (name[i]) return 0;
    return 1;
}

terse_codec_status terse_frame_read(terse_frame *frame, const uint8_t *bytes, size_t length, size_t *segments,
                                    size_t room) {
    if (length < sizeof magic || memcmp(bytes, magic, sizeof magic)) return TERSE_FRAME_NOT_A_FRAME;
    if (length < NAME) return TERSE_FRAME_CUT_SHORT;
    if (get_32(bytes + VERSION) != TERSE_FRAME_VERSION) return TERSE_FRAME_OTHER_VERSION;
    if (length < SEGMENTS + CHECKSUM_BYTES) return TERSE_FRAME_CUT_SHORT;

    // `left`: bytes that are there and not yet accounted for. Each length is compared with it, so nothing can overflow.
    size_t left = length - SEGMENTS - CHECKSUM_BYTES;
    const uint32_t segment_count = get_32(bytes + SEGMENT_COUNT);
    if (segment_count > left / 8) return TERSE_FRAME_CUT_SHORT;
    left -= 8 * (size_t)segment_count;
    const uint64_t length_64 = get_64(bytes + WIRE_BYTES);  // read once: another thread or process could write there
    if (length_64 > left) return TERSE_FRAME_CUT_SHORT;
    const size_t wire_bytes = (size_t)length_64, wire_at = SEGMENTS + 8 * (size_t)segment_count,
                 end = wire_at + wire_bytes;
    if (get_32(bytes + end) != terse_crc32c(bytes, end)) return TERSE_FRAME_DAMAGED;

    const uint64_t n = get_64(bytes + N), block = get_64(bytes + BLOCK), k = get_64(bytes + K);
    const uint32_t clip = get_32(bytes + CLIP);
    if (!name_is_good(bytes + NAME) || get_32(bytes + RANKS) == 1 || get_16(bytes + UNSCALED) > 1 ||
        bytes[INDICES] > TERSE_INDICES_ELIAS_FANO || bytes[VALUES] > TERSE_VALUES_SIGN ||
        get_32(bytes + LEVELS) > TERSE_LEVELS_LOGARITHMIC || clip >= 0x7F800000 || n > most || block > most ||
        k > most || n > SIZE_MAX / sizeof(float) || block > SIZE_MAX / sizeof(float) || k > SIZE_MAX / sizeof(float))
        return TERSE_FRAME_BAD_HEADER;
    const terse_codec *codec;
    const terse_codec_status found = terse_codec_find(&codec, (const char *)bytes + NAME, NULL);
    if (found != TERSE_CODEC_OK) return found;

    terse_codec_options options = TERSE_CODEC_OPTIONS;
    options.segment_count = segment_count;
    if (segment_count > room) {
        frame->options = options;
        return TERSE_FRAME_NO_ROOM;
    }
    for (size_t s = 0; s < segment_count; s++) {
        const uint64_t segment_end = get_64(bytes + SEGMENTS + 8 * s);
        if (segment_end > n) return TERSE_CODEC_BAD_SCALE_GROUPS;
        segments[s] = (size_t)segment_end;
    }
    if (segment_count) options.segments = segments;
    options.bits = get_16(bytes + BITS);
    options.side = get_16(bytes + SIDE);
    options.width = get_32(bytes + WIDTH);
    options.ranks = get_32(bytes + RANKS);
    options.unscaled = get_16(bytes + UNSCALED);
    options.indices = (terse_indices)bytes[INDICES];
    options.values = (terse_values)bytes[VALUES];
    options.levels = (terse_levels)get_32(bytes + LEVELS);
    options.dimensions = get_32(bytes + DIMENSIONS);
    options.block = (size_t)block;
    options.k = (size_t)k;
    memcpy(&options.clip, &clip, 4);

    size_t expected;
    const terse_codec_status status = terse_codec_wire_bytes(codec, (size_t)n, &options, &expected);
    if (status != TERSE_CODEC_OK) return status;
    if (expected != wire_bytes) return TERSE_CODEC_BAD_LENGTH;
    *frame = (terse_frame){codec, options, (size_t)n, bytes + wire_at, wire_bytes, end + CHECKSUM_BYTES};
    return TERSE_CODEC_OK;
}
