// What the checks share: those of C, in this folder, and those of kernels, in ../cuda. They know no codec. The folder
// of a codec has its configurations.c, and a check.c or check.cu where there is more to check
// (native/codecs/codecs.cmake).
#ifndef TERSE_CODECS_CHECK_H
#define TERSE_CODECS_CHECK_H
#include "terse/codecs.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { SENTINEL = 0xA5 };  // what lies where nothing may be written

extern long checks, bad_checks;
// Counts a check. The first 20 bad ones are printed: `what` by this implementation differs from scalar at n.
void expect(int good, const char *what, const char *implementation, size_t n, const char *how);

// One way to use a codec.
typedef struct configuration {
    const char *how;                                       // what is printed of it
    terse_codec_options options;                           // those that are the same for every n
    void (*fill)(terse_codec_options *options, size_t n);  // sets the others; NULL: there are none
    int segments, units, held;                             // 1: by segments, by units, with a mask
    float (*number)(void);                                 // gives the numbers that are written; NULL: any finite ones
    int refuses;                                           // 1: it cannot write all of them
    size_t least;                                          // the fewest floats that it writes
} configuration;

typedef struct configurations {
    const configuration *all;
    size_t count;
} configurations;
#define THESE(...) \
    {(const configuration[]){__VA_ARGS__}, sizeof((const configuration[]){__VA_ARGS__}) / sizeof(configuration)}

// How a codec is checked: as its folder says, or once, with what it takes.
configurations configurations_of(const terse_codec *codec);

// The options for n floats, and a draw. Segments, units and the mask lie in memory that the next call writes over.
terse_codec_options options_of(const configuration *c, size_t n);

uint64_t random_word(void);
void random_bytes(uint8_t *to, size_t bytes);

// Any finite one. Zeros of both signs, denormals and the largest are more frequent than by chance.
float any_float(void);
// What bf16 and f16 can write: the ends of their range, and every kind of rounding below.
float bf16_float(void);
float f16_float(void);
float gradient(void);     // as gradients have them, over some orders of magnitude
float sparse(void);       // the same between runs of zeros, so that whole scale groups are zero
float with_a_norm(void);  // any, but so that thousands of them have a norm and twice a mean in fp32
float near_one(void);     // nearby magnitudes, so that another order of adding shows in the last bits
float few_whole(void);    // whole numbers from -7 to 7
float one_or_minus_one(void);

// The lengths that are tried.
extern size_t lengths[], length_count;

// For a check.c. Where work is tried by kinds, it tries each, or each third.
extern size_t stride;
// Whether this machine runs the implementation, and it is to be checked.
int asked_for(const char *implementation);

#ifdef __cplusplus
}
#endif
#endif
