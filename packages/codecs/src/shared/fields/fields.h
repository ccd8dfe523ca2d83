// Fields: whole numbers of `width` bits side by side, least significant bit first, pad bits 0. Internal to the codecs.
//
//   width 3    bit  0 1 2 3 4 5 6 7 | 8 9 ...
//                   x[0]  x[1]  x[2]···           eight fields take `width` bytes, so 64 elements begin at a whole byte
//
// Fields of 4, 8 and 16 bits are summed where they lie: bytes (or 16-bit words) are added, and nothing carries from one
// field into the next as long as ranks * (2^bits - 1) <= 2^width - 1; with s levels on each side of 0, ranks * 2 s <=
// 2^width - 1.
#ifndef TERSE_FIELDS_H
#define TERSE_FIELDS_H
#include "terse/codecs.h"
#include "terse/walk.h"

static inline unsigned terse_field_bits(const terse_codec_options *o) { return o->bits ? o->bits : 1; }
static inline unsigned terse_field_width(const terse_codec_options *o) {
    return o->width ? o->width : terse_field_bits(o);
}
static inline uint32_t terse_field_ranks(const terse_codec_options *o) { return o->ranks ? o->ranks : 1; }

// n <= 2^48 and width <= 16: no overflow.
static inline size_t terse_field_bytes(size_t n, unsigned width) { return n * width / 8 + (n * width % 8 != 0); }

// `known`: the codec has fields of this width. There must be room for the sum of all ranks.
static inline terse_codec_status terse_check_fields(const terse_codec_options *o, int known) {
    const unsigned bits = terse_field_bits(o), width = terse_field_width(o);
    if (!known || width < bits) return TERSE_CODEC_BAD_WIDTH;
    const uint64_t most = o->side ? 2 * (uint64_t)o->side : ((uint64_t)1 << bits) - 1,
                   room = ((uint64_t)1 << width) - 1;
    return terse_field_ranks(o) * most <= room ? TERSE_CODEC_OK : TERSE_CODEC_TOO_MANY_RANKS;
}

static inline unsigned terse_field(const uint8_t *fields, size_t i, unsigned width) {
    const size_t at = i * width / 8;
    const unsigned shift = i * width % 8;
    unsigned value = (unsigned)fields[at] >> shift;
    if (shift + width > 8) value |= (unsigned)fields[at + 1] << (8 - shift);
    return value & ((1u << width) - 1);
}

// Fields must be set in ascending order, beginning at a whole byte: the first field in a byte overwrites the byte.
static inline void terse_set_field(uint8_t *fields, size_t i, unsigned width, unsigned value) {
    const size_t at = i * width / 8;
    const unsigned shift = i * width % 8;
    fields[at] = (uint8_t)(shift ? fields[at] | value << shift : value);
    if (shift + width > 8) fields[at + 1] = (uint8_t)(value >> (8 - shift));
}

// In any order, of fields that are written.
static inline void terse_change_field(uint8_t *fields, size_t i, unsigned width, unsigned value) {
    const size_t at = i * width / 8;
    const unsigned shift = i * width % 8, change = (terse_field(fields, i, width) ^ value) << shift;
    fields[at] = (uint8_t)(fields[at] ^ change);
    if (shift + width > 8) fields[at + 1] = (uint8_t)(fields[at + 1] ^ change >> 8);
}

// How many of n fields rounds of vectors may read: the last read of a round must not reach beyond the last byte.
static inline size_t terse_readable_fields(size_t n, unsigned width, size_t read_bytes, size_t read_fields) {
    const size_t bytes = terse_field_bytes(n, width);
    return bytes < read_bytes ? 0 : (bytes - read_bytes) * 8 / width / 8 * 8 + read_fields;
}
#define TERSE_READABLE_FIELDS(n, width) terse_readable_fields(n, width, TERSE_READ_BYTES, TERSE_READ_FIELDS)

// The prefetch distance in elements. A processor's own prefetching ends at the end of a page.
static inline size_t terse_fields_ahead(size_t run) { return run < TERSE_WALK_GROUP ? 512 : TERSE_WALK_GROUP; }

// The value of a field: (min(field, most) - offset) unit, in fp64, then rounded to fp32.
typedef struct terse_field_meaning {
    unsigned width;
    uint32_t most;
    double offset, unit;
} terse_field_meaning;

// sum[i] += scale * value of field i, i = from .. to - 1. n: fields in all, which says how far may be read.
typedef void terse_fields_add(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *meaning,
                              float scale, size_t from, size_t to);
terse_fields_add terse_fields_add_scalar, terse_fields_add_avx2, terse_fields_add_avx512, terse_fields_add_neon;

// sum[i] += values[field i]. width: 2 to 4.
typedef void terse_fields_look_up(float *sum, const uint8_t *fields, size_t n, unsigned width, const float values[16],
                                  size_t from, size_t to);
terse_fields_look_up terse_fields_look_up_scalar, terse_fields_look_up_avx2, terse_fields_look_up_avx512,
    terse_fields_look_up_neon;

static inline float terse_field_value(uint32_t field, const terse_field_meaning *m) {
    return (float)(((double)(field < m->most ? field : m->most) - m->offset) * m->unit);
}

#endif
