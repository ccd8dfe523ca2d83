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
#include "../../shared/scale-groups/scaling.h"

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
    terse_scaling scaling;
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
size_t terse_bin_means_table(const terse_scaling *scaling, double squares, const float *x, size_t begin, size_t end,
                             const terse_codec_options *o, float *table);
size_t terse_bin_means_encode(const terse_bin_means_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                              const terse_codec_options *o, size_t begin, size_t end);
int terse_bin_means_is_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end);
terse_codec_status terse_bin_means_decode_add(const terse_bin_means_kernel *kernel, float *sum, const uint8_t *wire,
                                              size_t n, const terse_codec_options *o, size_t begin, size_t end);

// The table of one implementation, from the functions of its kernel.
#define TERSE_BIN_MEANS(by, sum_chunk, write)                                                              \
    static double measure(const float *x, size_t n) { return terse_reductions_##by.sum_of_squares(x, n); } \
    static const terse_bin_means_kernel kernel = {                                                         \
        {measure, TERSE_SUM, 1, terse_bin_means_table}, sum_chunk, write, terse_fields_look_up_##by};      \
    TERSE_SCALED_CODEC(terse_bin_means_##by, bin_means, kernel, by, .name = "bin-means",                   \
                       .takes = TERSE_BIN_MEANS_TAKES, .check = terse_bin_means_check,                     \
                       .wire_bytes = terse_bin_means_wire_bytes, .is_good = terse_bin_means_is_good)

#endif
