// The means of bins: what the values of bin-means and the values of top-k in 2 bits stand for.
//
//   mean of bin b = (the sum of the values in b) / (how many there are)
//
// A sum is in fp64, in the order of ../reductions/reductions.h, where values of other bins count as 0.
#ifndef TERSE_MEANS_OF_BINS_H
#define TERSE_MEANS_OF_BINS_H
#include <string.h>

#include "../reductions/reductions.h"

enum { TERSE_MOST_BINS = 16 };

// A sum and a count, which one addition changes.
typedef double terse_sum_and_count __attribute__((vector_size(16)));

// The values of one chunk. Begin with zeros.
typedef struct terse_chunk_bins {
    terse_sum_and_count partial[TERSE_MOST_BINS][16];
} terse_chunk_bins;

typedef struct terse_bins {
    double sum[TERSE_MOST_BINS], count[TERSE_MOST_BINS];
} terse_bins;

// i: the index of x in its chunk, modulo 16.
static inline __attribute__((always_inline)) void terse_add_to_bin(terse_chunk_bins *chunk, unsigned bin, unsigned i,
                                                                   float x) {
    chunk->partial[bin][i] += (terse_sum_and_count){x, 1};
}

// Adds a chunk to the bins, and clears it.
static inline void terse_end_chunk_of_bins(terse_bins *bins, terse_chunk_bins *chunk, unsigned count) {
    for (unsigned bin = 0; bin < count; bin++) {
        double sums[16];
        for (int i = 0; i < 16; i++) sums[i] = chunk->partial[bin][i][0], bins->count[bin] += chunk->partial[bin][i][1];
        bins->sum[bin] += terse_reductions_fold(sums);
    }
    memset(chunk->partial, 0, count * sizeof *chunk->partial);
}

static inline double terse_mean_of_bin(const terse_bins *bins, unsigned bin, double of_empty) {
    return bins->count[bin] > 0 ? bins->sum[bin] / bins->count[bin] : of_empty;
}

#endif
