// What int8, bin-means and the codecs of levels share: the scales of a scale group follow from a reduction of its
// floats, and what is written of each float follows from the scales. encode computes the scales of small blocks itself,
// and all those that are not on the wire.
#ifndef TERSE_SCALING_H
#define TERSE_SCALING_H
#include "../reductions/reductions.h"
#include "scale_groups.h"

typedef struct terse_scaling {
    double (*measure)(const float *x, size_t n);  // the reduction; not finite if an element is not
    terse_combination combination;                // of the measures of chunks
    int is_table;                                 // 1: a scale group has 2^bits scales; 0: one
    // Sets the scales of the group [begin, end), of which this is the measure; 0 if it is empty. Returns end, or the
    // index of the element that is refused.
    size_t (*scales_from)(const struct terse_scaling *scaling, double measure, const float *x, size_t begin, size_t end,
                          const terse_codec_options *o, float *scales);
} terse_scaling;

static inline size_t terse_scales_of_range(const terse_scaling *scaling, const float *x, size_t begin, size_t end,
                                           const terse_codec_options *o, float *scales) {
    return scaling->scales_from(scaling, scaling->measure(x + begin, end - begin), x, begin, end, o, scales);
}

// Scales of a scale group.
static inline size_t terse_scales_each(const terse_scaling *scaling, const terse_codec_options *o) {
    return scaling->is_table ? (size_t)1 << o->bits : 1;
}

// Whether encode computes the scales.
static inline int terse_encode_scales(const terse_codec_options *o) { return o->unscaled || terse_scales_in_encode(o); }

// The functions of a table with these names.
size_t terse_scaling_prepare(const terse_scaling *scaling, uint8_t *wire, const float *x, size_t n,
                             const terse_codec_options *o);
size_t terse_scaling_prepare_measured(const terse_scaling *scaling, uint8_t *wire, const float *x, size_t n,
                                      const terse_codec_options *o, const double *measures);
size_t terse_scaling_scales(const terse_scaling *scaling, uint8_t *scales, const float *x, size_t n,
                            const terse_codec_options *o);

// For encode, whose range begins at `range`: gets the scales of the part's group from the wire, or computes and writes
// them. Returns the group's end, or the index of the element that is refused. Inline, because blocks may be short.
static inline size_t terse_scales_of_part(const terse_scaling *scaling, uint8_t *wire, const float *x,
                                          const terse_group_part *part, size_t range, const terse_codec_options *o,
                                          float *scales) {
    const size_t count = terse_scales_each(scaling, o), first = part->r * count;
    if (!terse_encode_scales(o)) {
        for (size_t s = 0; s < count; s++) scales[s] = terse_scale_at(wire, first + s);
        return part->end;
    }
    const size_t accepted = terse_scales_of_range(scaling, x, part->begin, part->end, o, scales);
    // Whoever encodes the beginning of a group writes its scales.
    if (accepted == part->end && !o->unscaled && part->begin >= range)
        for (size_t s = 0; s < count; s++) terse_set_scale(wire, first + s, scales[s]);
    return accepted;
}

// The table of an implementation, from its kernel, which has a `scaling`; terse_<named>_encode and
// terse_<named>_decode_add take the kernel. The other members of the table follow.
#define TERSE_SCALED_CODEC(symbol, named, kernel, by, ...)                                                           \
    static size_t prepare(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {                   \
        return terse_scaling_prepare(&(kernel).scaling, wire, x, n, o);                                              \
    }                                                                                                                \
    static double measure_chunk(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, \
                                size_t end) {                                                                        \
        (void)wire, (void)n, (void)o;                                                                                \
        return (kernel).scaling.measure(x + begin, end - begin);                                                     \
    }                                                                                                                \
    static size_t prepare_measured(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,            \
                                   const double *measures) {                                                         \
        return terse_scaling_prepare_measured(&(kernel).scaling, wire, x, n, o, measures);                           \
    }                                                                                                                \
    static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,        \
                         size_t end) {                                                                               \
        return terse_##named##_encode(&(kernel), wire, x, n, o, begin, end);                                         \
    }                                                                                                                \
    static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,    \
                                         size_t begin, size_t end) {                                                 \
        return terse_##named##_decode_add(&(kernel), sum, wire, n, o, begin, end);                                   \
    }                                                                                                                \
    const terse_codec symbol = {.implementation = #by,                                                               \
                                .prepare = prepare,                                                                  \
                                .encode = encode,                                                                    \
                                .decode_add = decode_add,                                                            \
                                .blocks_in_encode = TERSE_BLOCK_IN_ENCODE,                                           \
                                .measure = measure_chunk,                                                            \
                                .prepare_measured = prepare_measured,                                                \
                                __VA_ARGS__};

#endif
