// Levels: the part that l1, linf and qsgd share. One scale per scale group, then one level q per field, from -s to s,
// written as q + s.
//
//   s = 2^(bits - 1) - 1, or fewer: `side`        level s stands for reach * scale
//   wire: scales (fp32, one per scale group; none where unscaled), then the fields
//
// Unscaled wires can be summed: the fields of all ranks add up to (sum of q) + ranks s. With units, q = x / unit, and
// the sum decodes to (sum of q) unit.
#ifndef TERSE_LEVELS_H
#define TERSE_LEVELS_H
#include <float.h>

#include "../scale-groups/scaling.h"
#include "../fields/fields.h"
#include "terse/walk.h"

typedef struct terse_levels_codec {
    terse_scaling scaling;
    double reach;
    double (*scale_of)(double measure, size_t n);  // the scale of n > 0 elements, in fp64
    // Fields of the elements [from, to), which all have this scale (more than 0), or this unit where units are given;
    // x[0] and field 0 are those of the whole vector.
    void (*quantise)(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from,
                     size_t to);
    terse_fields_add *add;
    // Writes scale and fields of an x that is one scale group, in one pass over x; false if that is not possible for
    // this x. NULL: never is.
    int (*encode_in_one_pass)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o);
} terse_levels_codec;

// The number of levels on one side of zero.
static inline unsigned terse_levels_a_side(const terse_codec_options *o) {
    return o->side ? o->side : (1u << (o->bits - 1)) - 1;
}

// The prefetch distance of a quantiser. With small blocks it covers the next ones, whose scales are computed first.
static inline size_t terse_levels_ahead(const terse_codec_options *o) {
    if (!terse_scales_in_encode(o)) return TERSE_WALK_GROUP;
    return o->block < 2048 ? 1024 : o->block;
}

static inline uint8_t *terse_levels_fields(uint8_t *wire, size_t n, const terse_codec_options *o) {
    return wire + (o->unscaled ? 0 : 4 * terse_scale_group_count(n, o));
}

size_t terse_levels_wire_bytes(size_t n, const terse_codec_options *o);
terse_codec_status terse_levels_check(size_t n, const terse_codec_options *o);
size_t terse_levels_scale(const terse_scaling *scaling, double measure, const float *x, size_t begin, size_t end,
                          const terse_codec_options *o, float *scale);
size_t terse_levels_encode_at_once(const terse_levels_codec *codec, uint8_t *wire, const float *x, size_t n,
                                   const terse_codec_options *o);
size_t terse_levels_encode(const terse_levels_codec *codec, uint8_t *wire, const float *x, size_t n,
                           const terse_codec_options *o, size_t begin, size_t end);
terse_codec_status terse_levels_decode_add(const terse_levels_codec *codec, float *sum, const uint8_t *wire, size_t n,
                                           const terse_codec_options *o, size_t begin, size_t end);

static inline int terse_levels_can_be_a_scale(double scale, double reach) {
    return scale >= 0 && scale * reach <= FLT_MAX;
}

// Whether an encoder can have written the scales of the elements [begin, end).
int terse_levels_scales_are_good(double reach, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                 size_t begin, size_t end);

// The table of a codec, from its terse_levels_codec, which has its name.
#define TERSE_LEVELS_TABLE(codec, flags, by)                                                                    \
    static size_t scales_of(uint8_t *scales, const float *x, size_t n, const terse_codec_options *o) {          \
        return terse_scaling_scales(&(codec).scaling, scales, x, n, o);                                         \
    }                                                                                                           \
    static size_t encode_at_once(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {       \
        return terse_levels_encode_at_once(&(codec), wire, x, n, o);                                            \
    }                                                                                                           \
    static int is_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end) { \
        return terse_levels_scales_are_good((codec).reach, wire, n, o, begin, end);                             \
    }                                                                                                           \
    TERSE_SCALED_CODEC(terse_##codec##_##by, levels, codec, by, .name = #codec, .takes = (flags),               \
                       .check = terse_levels_check, .wire_bytes = terse_levels_wire_bytes, .is_good = is_good,  \
                       .scales = scales_of, .encode_at_once = encode_at_once)

#endif
