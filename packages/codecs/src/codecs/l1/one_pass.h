// One pass over memory instead of two. A sample gives a lower and an upper bound of the factor s / (2 scale), and
// fields are written while the magnitudes are summed. Most fields are the same for both bounds; the others are written
// when the scale is known.
#ifndef TERSE_ONE_PASS_H
#define TERSE_ONE_PASS_H
#include "l1.h"

enum {
    TERSE_L1_GROUP = 4 * TERSE_REDUCTION_CHUNK,
    TERSE_L1_UNDECIDED = TERSE_L1_GROUP / 32,  // the most undecided elements per group: a group with more is read again
    TERSE_L1_LONG = 1 << 24,                   // elements: shorter vectors are read twice, because they lie in a cache
    TERSE_L1_SAMPLE = 256,  // elements per place: the latency of a page costs more than a few of its lines
};

// The length of a stretch, each of which gives one sample; 0: x is too short. A change of the factor moves a float of
// level q by |q| times as much, so finer levels need more samples.
static inline size_t terse_l1_stretch(size_t n, unsigned s) {
    const size_t enough = (size_t)16000 * s * s, most = 64, least = 6, part = n / enough;
    return n < TERSE_L1_LONG || part < least ? 0 : TERSE_L1_SAMPLE * (part < most ? part : most);
}

// The first element of sample i: not at the same offset of each stretch, because floats may be periodic.
static inline size_t terse_l1_sampled(size_t stretch, size_t i) {
    const uint64_t part = (uint32_t)i * 2654435761u;  // of 2^32, spread by the golden ratio
    return i * stretch + (size_t)(part * (stretch / TERSE_L1_SAMPLE) >> 32) * TERSE_L1_SAMPLE;
}

typedef struct terse_l1_guess {
    unsigned width, s;
    float low, middle, high;
} terse_l1_guess;

typedef struct terse_l1_undecided {
    uint32_t at;  // in its group
    float x;
} terse_l1_undecided;

typedef struct terse_l1_kernel {
    const terse_reductions *reductions;
    void (*quantise)(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from,
                     size_t to);
    // For one group: the sums of its chunks, as in reductions.h; its fields for both factors; and the elements, in any
    // order, whose fields differ. Returns how many differ, even if there is no room for all of them.
    size_t (*read_group)(double of_chunks[4], uint8_t *fields, terse_l1_undecided *undecided, const float *x,
                         const terse_l1_guess *guess);
} terse_l1_kernel;
extern const terse_l1_kernel terse_l1_kernel_avx2, terse_l1_kernel_avx512;

// Walks a group, its chunks side by side as terse_walk does pages: round(context, c, i) reads and writes the 64
// elements from i on, which lie in chunk c, and returns one bit per element: 1 if it is undecided.
static inline __attribute__((always_inline)) size_t terse_l1_walk_group(terse_l1_undecided *undecided, const float *x,
                                                                        uint64_t (*round)(void *context, size_t c,
                                                                                          size_t i),
                                                                        void *context) {
    size_t count = 0;
    for (size_t at = 0; at < TERSE_REDUCTION_CHUNK; at += TERSE_ROUND)
#pragma GCC unroll 4
        for (size_t c = 0; c < TERSE_L1_GROUP / TERSE_REDUCTION_CHUNK; c++) {
            const size_t i = c * TERSE_REDUCTION_CHUNK + at;
            for (uint64_t which = round(context, c, i); which; which &= which - 1, count++) {
                const size_t e = i + (size_t)__builtin_ctzll(which);
                if (count < TERSE_L1_UNDECIDED) undecided[count] = (terse_l1_undecided){(uint32_t)e, x[e]};
            }
        }
    return count;
}

int terse_l1_encode_in_one_pass(const terse_l1_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                                const terse_codec_options *o);

#endif
