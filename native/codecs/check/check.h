// What the checks of C (this folder) and the checks of kernels (../cuda) share. They name no codec: the folder of each
// codec has a configurations.c, and a check.c or check.cu where only this codec has something to check (codecs.cmake).
#ifndef TERSE_CODECS_CHECK_H
#define TERSE_CODECS_CHECK_H
#include "terse/codecs.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { SENTINEL = 0xA5 };  // fills the memory that nothing may write

extern long checks, bad_checks;
// Counts a check. If it is bad, prints that `what` of this implementation differs from scalar at n: the first 20 times.
void expect(int good, const char *what, const char *implementation, size_t n, const char *how);

// One way to use a codec.
typedef struct configuration {
    const char *how;                                       // its name in what is printed
    terse_codec_options options;                           // the options that are the same for every n
    void (*fill)(terse_codec_options *options, size_t n);  // sets the options that depend on n; NULL: none does
    int segments, units, held;                             // 1: with segments, with units, with a mask
    float (*number)(void);                                 // gives the numbers to encode; NULL: any_float
    int refuses;                                           // 1: the codec cannot write all of these numbers
    size_t least;                                          // the fewest floats that the codec writes
} configuration;

typedef struct configurations {
    const configuration *all;
    size_t count;
} configurations;
#define THESE(...) \
    {(const configuration[]){__VA_ARGS__}, sizeof((const configuration[]){__VA_ARGS__}) / sizeof(configuration)}

// The configurations in the codec's folder. Where it has none: one, with a value for every option that it takes.
configurations configurations_of(const terse_codec *codec);

// The options for n floats, with a new draw. The next call writes over the memory of segments, units and the mask.
terse_codec_options options_of(const configuration *c, size_t n);

// Whether the bits are equal; those of a NaN are not specified, so all NaN are.
int same_double(double a, double b);

uint64_t random_word(void);
void random_bytes(uint8_t *to, size_t bytes);

// Any finite float. Zeros of both signs, the smallest and the largest are more frequent than by chance.
float any_float(void);
// Floats that bf16 and f16 can write: the ends of their range, and numbers with every kind of rounding.
float bf16_float(void);
float f16_float(void);
float gradient(void);     // over some orders of magnitude, like gradients
float sparse(void);       // gradients between runs of zeros, so that whole scale groups are zero
float with_a_norm(void);  // so small that the norm of thousands of them, and twice their mean, fit fp32
float near_one(void);     // near 1 or 2^-20, so that another order of adding shows in the last bits
float few_whole(void);    // whole numbers from -7 to 7
float one_or_minus_one(void);

// The lengths to check.
extern size_t lengths[], length_count;

// The step of a check.c's loops over kinds of work: 1, or 3 for a third of the checks.
extern size_t stride;
// Whether this run checks the implementation: this machine can run it, and it was not left out.
int asked_for(const char *implementation);

#ifdef __cplusplus
}
#endif
#endif
