// bin-means: m = 2^bits values a scale group, the means of m equal bins, and for each float the index of the nearest.
// n floats -> 4 m scale groups + ceil(n bits / 8) bytes.
//
//   bin       = clamp(floor(x (m / (6 rms)) + m / 2), 0, m - 1)
//   table[b]  = fp32(mean of the x in bin b), or the middle of b if it is empty
//   q         = how many midpoints (table[k] + table[k + 1]) / 2 are less than x        decoded = table[q]
#ifndef TERSE_BIN_MEANS_H
#define TERSE_BIN_MEANS_H
#include "../../shared/fields/fields.h"
#include "../../shared/means-of-bins/means_of_bins.h"
#include "../../shared/reductions/reductions.h"
#include "../../shared/scale-groups/scale_groups.h"

extern const terse_codec terse_bin_means_scalar, terse_bin_means_avx2, terse_bin_means_avx512, terse_bin_means_neon;

enum { TERSE_BIN_MEANS_TAKES = TERSE_TAKES_BITS | TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS };

// The midpoints of a table as a tree, so that a search takes `bits` comparisons: the children of above[h] are above[2
// h] and above[2 h + 1]; above[1] is the root. Each is the largest fp32 that does not exceed its midpoint, which no
// fp32 tells from it.
typedef struct terse_midpoints {
    float above[TERSE_MOST_BINS];
} terse_midpoints;

static inline unsigned terse_nearest_entry(const terse_midpoints *midpoints, float x, unsigned bits) {
    unsigned h = 1;
    for (unsigned level = 0; level < bits; level++) h = 2 * h + (x > midpoints->above[h]);
    return h - (1u << bits);
}

typedef struct terse_bin_means_kernel {
    const terse_reductions *reductions;
    // Adds the n elements of one chunk to the bins. |x| per_float is less than 2^31, because |x| <= sqrt(n) rms.
    void (*sum_chunk)(terse_bins *bins, const float *x, size_t n, unsigned bits, double per_float);
    // The fields of the elements [from, to), which share a table. x[0] and field 0 are those of the whole vector.
    void (*write)(uint8_t *fields, const float *x, const terse_midpoints *midpoints, unsigned bits, size_t from,
                  size_t to);
    terse_fields_look_up *add;
} terse_bin_means_kernel;

void terse_bin_means_write(uint8_t *fields, const float *x, const terse_midpoints *midpoints, unsigned bits,
                           size_t from, size_t to);

// What all implementations share.
terse_codec_status terse_bin_means_check(size_t n, const terse_codec_options *o);
size_t terse_bin_means_wire_bytes(size_t n, const terse_codec_options *o);
size_t terse_bin_means_prepare(const terse_bin_means_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                               const terse_codec_options *o);
size_t terse_bin_means_prepare_measured(const terse_bin_means_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                                        const terse_codec_options *o, const double *measures);
size_t terse_bin_means_encode(const terse_bin_means_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                              const terse_codec_options *o, size_t begin, size_t end);
int terse_bin_means_is_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end);
terse_codec_status terse_bin_means_decode_add(const terse_bin_means_kernel *kernel, float *sum, const uint8_t *wire,
                                              size_t n, const terse_codec_options *o, size_t begin, size_t end);

// The table of one implementation, from its kernel.
#define TERSE_BIN_MEANS(kernel, by)                                                                               \
    static size_t prepare(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {                \
        return terse_bin_means_prepare(&(kernel), wire, x, n, o);                                                 \
    }                                                                                                             \
    static double measure(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,    \
                          size_t end) {                                                                           \
        (void)wire, (void)n, (void)o;                                                                             \
        return (kernel).reductions->sum_of_squares(x + begin, end - begin);                                       \
    }                                                                                                             \
    static size_t prepare_measured(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,         \
                                   const double *measures) {                                                      \
        return terse_bin_means_prepare_measured(&(kernel), wire, x, n, o, measures);                              \
    }                                                                                                             \
    static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,     \
                         size_t end) {                                                                            \
        return terse_bin_means_encode(&(kernel), wire, x, n, o, begin, end);                                      \
    }                                                                                                             \
    static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, \
                                         size_t begin, size_t end) {                                              \
        return terse_bin_means_decode_add(&(kernel), sum, wire, n, o, begin, end);                                \
    }                                                                                                             \
    const terse_codec terse_bin_means_##by = {                                                                    \
        .name = "bin-means",                                                                                      \
        .implementation = #by,                                                                                    \
        .takes = TERSE_BIN_MEANS_TAKES,                                                                           \
        .check = terse_bin_means_check,                                                                           \
        .wire_bytes = terse_bin_means_wire_bytes,                                                                 \
        .prepare = prepare,                                                                                       \
        .encode = encode,                                                                                         \
        .is_good = terse_bin_means_is_good,                                                                       \
        .decode_add = decode_add,                                                                                 \
        .blocks_in_encode = TERSE_BLOCK_IN_ENCODE,                                                                \
        .measure = measure,                                                                                       \
        .prepare_measured = prepare_measured,                                                                     \
    };

#endif
