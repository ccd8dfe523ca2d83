// Scale groups: the elements that share one scale. They are the whole vector, blocks of a fixed length (the last may be
// shorter), or segments. Internal to the codecs, no part of the ABI. The wire begins with the scales, one fp32 per
// scale group.
#ifndef TERSE_SCALE_GROUPS_H
#define TERSE_SCALE_GROUPS_H
#include <string.h>

#include "terse/codecs.h"

// An empty vector has no scale group, unless segments are given: every segment is one, and the scale of an empty one is
// 0.
static inline size_t terse_scale_group_count(size_t n, const terse_codec_options *o) {
    if (o->segments) return o->segment_count;
    if (o->block) return n / o->block + (n % o->block != 0);
    return n != 0;
}

// Scale group r is [terse_scale_group_begin(r), terse_scale_group_begin(r + 1)).
static inline size_t terse_scale_group_begin(size_t r, size_t n, const terse_codec_options *o) {
    if (o->segments) return r ? o->segments[r - 1] : 0;
    if (o->block) return n / o->block < r ? n : r * o->block;
    return r ? n : 0;
}

// The scale group that element i < n belongs to.
static inline size_t terse_scale_group_of(size_t i, const terse_codec_options *o) {
    if (o->block) return i / o->block;
    size_t low = 0, high = o->segments ? o->segment_count - 1 : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (o->segments[middle] > i) high = middle;
        else low = middle + 1;
    }
    return low;
}

// The elements [from, to) of a range that lie in scale group r, which is [begin, end).
typedef struct terse_group_part {
    size_t r, begin, end, from, to;
} terse_group_part;

// The part of group r that begins at `from`, of a range that ends at `stop`. Empty at the end of the range.
static inline terse_group_part terse_group_part_of(size_t r, size_t begin, size_t from, size_t stop, size_t n,
                                                   const terse_codec_options *o) {
    terse_group_part part = {r, begin, from, from, from};
    if (from >= stop) return part;
    part.end = terse_scale_group_begin(r + 1, n, o);
    part.to = part.end < stop ? part.end : stop;
    return part;
}

static inline terse_group_part terse_first_part(size_t first, size_t stop, size_t n, const terse_codec_options *o) {
    const size_t r = first < stop ? terse_scale_group_of(first, o) : 0;
    return terse_group_part_of(r, terse_scale_group_begin(r, n, o), first, stop, n, o);
}

// A loop over the parts of the range [first, stop), in order; those of empty segments are empty.
#define TERSE_EACH_GROUP_PART(part, first, stop, n, o)                                      \
    for (terse_group_part part = terse_first_part(first, stop, n, o); (part).from < (stop); \
         part = terse_group_part_of((part).r + 1, (part).end, (part).to, stop, n, o))

static inline float terse_scale_at(const uint8_t *wire, size_t r) {
    float scale;
    memcpy(&scale, wire + 4 * r, 4);
    return scale;
}

static inline void terse_set_scale(uint8_t *wire, size_t r, float scale) { memcpy(wire + 4 * r, &scale, 4); }

enum { TERSE_MOST_SCALES = 16 };  // fp32 a scale group

// The longest block that fits the cache. encode computes the scales of such blocks, so that memory is read once.
enum { TERSE_BLOCK_IN_ENCODE = 1 << 16 };
static inline int terse_scales_in_encode(const terse_codec_options *o) {
    return o->block && o->block <= TERSE_BLOCK_IN_ENCODE;
}

// Computes the scale of one scale group, one fp32 or several: sets them and returns end, or returns the index of the
// element in [begin, end) that it refuses.
typedef size_t terse_compute_scale(const void *by, const float *x, size_t begin, size_t end,
                                   const terse_codec_options *options, float *scale);

// Sets the scale of every scale group, `each` fp32, on several threads: a thread computes many small scale groups, and
// all threads share a large one. Returns n, or the index of the first element that is refused.
size_t terse_compute_scales(terse_compute_scale *of_group, const void *by, size_t each, uint8_t *scales, const float *x,
                            size_t n, const terse_codec_options *options);

// The scale groups that the elements [begin, end) need, with the empty segments behind them, so that the ranges of all
// parts of a vector have every scale group.
typedef struct terse_scale_group_range {
    size_t first, end;
} terse_scale_group_range;
static inline terse_scale_group_range terse_scale_groups_of(size_t begin, size_t end, size_t n,
                                                            const terse_codec_options *o) {
    terse_scale_group_range range = {begin && begin < n ? terse_scale_group_of(begin, o) : 0,
                                     terse_scale_group_count(n, o)};
    if (end < n) {
        range.end = terse_scale_group_of(end, o);
        range.end += terse_scale_group_begin(range.end, n, o) < end;
    }
    return range;
}

// Whether all scales of the elements [begin, end) are finite and not negative, as encoders write them.
static inline int terse_scales_are_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin,
                                        size_t end) {
    const terse_scale_group_range groups = terse_scale_groups_of(begin, end, n, o);
    for (size_t r = groups.first; r < groups.end; r++) {
        const float scale = terse_scale_at(wire, r);
        if (!(scale >= 0.0f) || scale - scale != 0.0f) return 0;
    }
    return 1;
}

#endif
