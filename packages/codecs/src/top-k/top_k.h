// top-k: the k floats of largest magnitude, with their places. n floats -> ceil(k ceil(log2 n) / 8) + 4 k bytes.
//
//   indices   k, ascending, ceil(log2 n) bits each, to whole bytes
//   values    k fp32
//
// Selection, without sorting and without memory of its own: the bits of a magnitude order like the magnitude, so the k-th largest
// is a number of 31 bits, found by counting how many floats lie in each of 2048 equal ranges of it, then in 2048 parts of that range
// which holds the k-th, until a range is one number. A sample says where to look first; where it misled, one looks everywhere.
#ifndef TERSE_TOP_K_H
#define TERSE_TOP_K_H
#include "indices.h"
#include "terse/codecs.h"

extern const terse_codec terse_top_k_scalar, terse_top_k_avx2, terse_top_k_avx512, terse_top_k_neon;

enum {
    TOP_K_TAKES = TERSE_TAKES_K,
    TOP_K_RANGE_BITS = 11,
    TOP_K_RANGES = 1 << TOP_K_RANGE_BITS,
};

// Magnitudes in sight: range r holds those from low + (r << shift) to low + (r + 1 << shift), as bits.
typedef struct top_k_sight {
    uint32_t low;
    int shift;
    uint32_t end;  // behind the last range, at most infinity's bits
    size_t beyond; // how many magnitudes are `end` or more
    size_t in[TOP_K_RANGES];
} top_k_sight;

// Who is chosen: magnitudes above `least`, and the first `ties` that equal it.
typedef struct top_k_choice {
    terse_chosen_writer writer;
    const float *x;
    uint32_t least;
    size_t ties, left;
} top_k_choice;

// What differs between implementations. Both work on the elements [begin, end) of x.
typedef struct top_k_kernel {
    // Counts into the sight. False where a float is NaN or infinite. At most 2^30 elements.
    int (*count)(top_k_sight *sight, const float *x, size_t begin, size_t end);
    void (*choose)(top_k_choice *choice, size_t begin, size_t end);
} top_k_kernel;
extern const top_k_kernel top_k_scalar_kernel;

terse_codec_status top_k_check(size_t n, const terse_codec_options *options);
size_t top_k_wire_bytes(size_t n, const terse_codec_options *options);
size_t top_k_encode(const top_k_kernel *kernel, uint8_t *wire, const float *x, size_t n, size_t k);
terse_codec_status top_k_decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end);

static inline void top_k_count_one(top_k_sight *sight, uint32_t magnitude) { sight->in[(magnitude - sight->low) >> sight->shift]++; }

// For an element whose magnitude is `least` or more.
static inline void top_k_choose_one(top_k_choice *choice, size_t i) {
    if (terse_magnitude_bits(choice->x + i) == choice->least) {
        if (choice->ties == 0) return;
        choice->ties--;
    }
    terse_choose(&choice->writer, i, choice->x + i);
    choice->left--;
}

#endif
