// One reading of memory instead of two: a sample says between which factors the factor will lie, and the fields are
// written while the magnitudes are summed. Most are the same by either factor; the others wait for the scale.
#ifndef TERSE_ONE_PASS_H
#define TERSE_ONE_PASS_H
#include "l1.h"

enum {
    TERSE_L1_GROUP = 4 * TERSE_REDUCTION_CHUNK,
    TERSE_L1_UNDECIDED = TERSE_L1_GROUP / 32,  // as many of a group at most: where there are more, it is read again
    TERSE_L1_LONG = 1 << 24,                   // elements: what is shorter is near enough to be read twice
    TERSE_L1_SAMPLE = 256,                     // elements at a place: a page that is far takes longer than some lines of it
};

// A sample is taken in each stretch of so many elements; 0: none, x is too short. A float whose level is q changes it with a part |q|
// of what the factor does, so that finer levels need more.
static inline size_t terse_l1_stretch(size_t n, unsigned s) {
    const size_t enough = (size_t)16000 * s * s, most = 64, least = 6, part = n / enough;
    return n < TERSE_L1_LONG || part < least ? 0 : TERSE_L1_SAMPLE * (part < most ? part : most);
}

// The first element of sample i: not always the same one of a stretch, as floats may have a period.
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
    void (*quantise)(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to);
    // Of one group: the sums of its chunks, as measures have them; its fields by either factor; and those elements, in any order,
    // whose fields differ. Returned is how many do, even where there is no room for so many.
    size_t (*read_group)(double of_chunks[4], uint8_t *fields, terse_l1_undecided *undecided, const float *x, const terse_l1_guess *guess);
} terse_l1_kernel;
extern const terse_l1_kernel terse_l1_kernel_avx2, terse_l1_kernel_avx512;

// Walks a group, its chunks side by side as terse_walk does pages: round(context, c, i) reads and writes the 64 elements from i on,
// which lie in chunk c, and says by a bit each which of them are undecided.
static inline __attribute__((always_inline)) size_t terse_l1_walk_group(terse_l1_undecided *undecided, const float *x,
                                                                        uint64_t (*round)(void *context, size_t c, size_t i), void *context) {
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

int terse_l1_encode_in_one_pass(const terse_l1_kernel *kernel, uint8_t *wire, const float *x, size_t n, const terse_codec_options *o);

#endif
