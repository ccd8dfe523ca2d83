// Optimizer kernels: each array is read once, and what is sent is packed on the way.
//
// All arithmetic is fp32 without fused multiply-add, in the order written here, so every implementation gives the same bits.
// Numbers given as double are rounded to fp32 once; 1 - beta is computed in double first. Sizes are in elements. Packed signs
// are as in terse/codecs.h: least significant bit first, 1 = plus. Nothing here allocates, keeps state, prints or exits.
// Arrays of one call may not overlap.
//
// A kernel that returns size_t returns n; or it meets a NaN or an infinity and returns the first one's index: then the arrays
// that it writes are updated in part, in an order of its own, and of no more use.
#ifndef TERSE_OPTIMIZERS_H
#define TERSE_OPTIMIZERS_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TERSE_OPTIMIZERS_ABI 2

// The TERSE_OPTIMIZERS_ABI that the library was built with.
uint32_t terse_optimizers_abi(void);

typedef enum terse_optimizer_status {
    TERSE_OPTIMIZER_OK = 0,
    TERSE_OPTIMIZER_NOT_HERE = 1,   // there is no such implementation, or this machine cannot run it
    TERSE_OPTIMIZER_BAD_RANKS = 2,  // fewer than 1 or more than TERSE_TALLY_MAX_RANKS ranks in a tally
} terse_optimizer_status;

// One sentence about a status, for people. Never NULL.
const char *terse_optimizer_sentence(terse_optimizer_status status);

// What an exact zero of c votes for, or how it moves theta; TERSE_LION_HOLD: not at all (terse_lion.step only).
typedef enum terse_lion_zero { TERSE_LION_MINUS = 0, TERSE_LION_PLUS = 1, TERSE_LION_HOLD = 2 } terse_lion_zero;

typedef struct terse_lion_options {
    double lr, beta1, beta2, weight_decay;
    terse_lion_zero zero;
    float gradient_scale;  // every g is multiplied by it first, rounded to fp32: clipping costs no pass of its own. 1 changes nothing
} terse_lion_options;

enum { TERSE_TALLY_MAX_RANKS = 1024 };

// Lion (Chen et al. 2023, Algorithm 2), whole and in two halves with a vote between them.
typedef struct terse_lion {
    const char *implementation;  // "scalar", "avx2", ...

    // g = g gradient_scale;  c = beta1 m + (1 - beta1) g;  wire = sign(c);  m = beta2 m + (1 - beta2) g      wire: (n + 7) / 8 bytes, pads 0
    // Uses beta1, beta2, zero and gradient_scale of the options.
    size_t (*vote)(uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options);

    // c and m as above;  theta = theta keep + (+-scale), where keep = 1 - lr weight_decay and scale = -lr
    size_t (*step)(float *theta, float *m, const float *g, size_t n, const terse_lion_options *options);

    // theta = theta keep + (+-scale)
    void (*apply_signs)(float *theta, const uint8_t *wire, size_t n, float keep, float scale);

    // The same; theta = theta keep where nonzero is 0
    void (*apply_ternary)(float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep, float scale);

    // theta = theta keep + ((2 c - ranks) / ranks) scale; planes[k] = bit k of c, as many planes as ranks has bits
    terse_optimizer_status (*apply_tally)(float *theta, const uint8_t *const *planes, size_t ranks, size_t n, float keep, float scale);
} terse_lion;

typedef struct terse_adamw_options {
    double lr, beta1, beta2, eps, weight_decay;
    uint64_t step;         // 1 for the first update
    float gradient_scale;  // as in terse_lion_options
} terse_adamw_options;

// AdamW (Loshchilov, Hutter 2019, Algorithm 2) as PyTorch has it.
typedef struct terse_adamw {
    const char *implementation;

    // g = g gradient_scale;  m = beta1 m + (1 - beta1) g;  v = beta2 v + ((1 - beta2) g) g
    // theta = theta keep - (rate m) / (sqrt(v) + epsilon)
    // where keep = 1 - lr weight_decay, b1 = 1 - beta1^step, b2 = 1 - beta2^step, rate = lr sqrt(b2) / b1, epsilon = eps sqrt(b2):
    // PyTorch's lr / b1 m / (sqrt(v) / sqrt(b2) + eps), its numerator and denominator times sqrt(b2), which saves a division.
    size_t (*step)(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options);
} terse_adamw;

typedef struct terse_reductions {
    const char *implementation;

    // Sum of x[i]^2 in fp64: partial sum j takes every i with i mod 16 = j, in the order of terse/walk.h, then the 16 fold in
    // halves. The order depends on n alone. NaN and infinities propagate.
    double (*sum_of_squares)(const float *x, size_t n);
} terse_reductions;

// The sum of squares of every TERSE_REDUCTION_CHUNK elements, added in order: the same whatever the number of threads.
enum { TERSE_REDUCTION_CHUNK = 1 << 16 };
double terse_sum_of_squares(const terse_reductions *reductions, const float *x, size_t n);

// A 64-bit number of the bits of x and their order, the same on every machine: ranks compare their parameters by it.
uint64_t terse_fingerprint(const float *x, size_t n);

// Best implementation that this machine can run. `implementation` forces one; NULL asks the environment variable
// TERSE_IMPLEMENTATION, then takes the best. The pointer is set only on TERSE_OPTIMIZER_OK.
terse_optimizer_status terse_lion_find(const terse_lion **lion, const char *implementation);
terse_optimizer_status terse_adamw_find(const terse_adamw **adamw, const char *implementation);
terse_optimizer_status terse_reductions_find(const terse_reductions **reductions, const char *implementation);

// Every implementation that this machine can run, best first. NULL past the end.
const terse_lion *terse_lion_at(size_t i);
const terse_adamw *terse_adamw_at(size_t i);
const terse_reductions *terse_reductions_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
