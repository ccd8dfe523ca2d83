// Fused optimizer kernels. Each reads every array once; the signs that are sent are packed in the same pass.
//
// All arithmetic is fp32, in the order written here, without fused multiply-add except where it says fma: all
// implementations give the same bits. A double is rounded to fp32 once; 1 - beta is computed in double before that.
// Sizes are in elements. Packed signs are as in terse/codecs.h: least significant bit first, 1 = plus. No function
// allocates, prints or exits, and no result depends on earlier calls. The arrays of one call must not overlap.
//
// A kernel that returns size_t returns n. If an element is NaN or infinite, it returns the index of the first such
// element; the output arrays are then updated in part, in no fixed order, and must not be used any more.
#ifndef TERSE_OPTIMIZERS_H
#define TERSE_OPTIMIZERS_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TERSE_OPTIMIZERS_API __attribute__((visibility("default")))
#else
#define TERSE_OPTIMIZERS_API
#endif

#define TERSE_OPTIMIZERS_ABI 7

// The TERSE_OPTIMIZERS_ABI that the library was built with.
TERSE_OPTIMIZERS_API uint32_t terse_optimizers_abi(void);

// How many threads share a call, where it says so; 1 at the start.
TERSE_OPTIMIZERS_API void terse_optimizers_use_threads(unsigned threads);

typedef enum terse_optimizer_status {
    TERSE_OPTIMIZER_OK = 0,
    TERSE_OPTIMIZER_UNAVAILABLE = 1,  // there is no such implementation, or this machine cannot run it
    TERSE_OPTIMIZER_BAD_RANKS = 2,    // fewer than 1 or more than TERSE_TALLY_MAX_RANKS ranks in a tally
} terse_optimizer_status;

// A status as a sentence. Never NULL.
const char *terse_optimizer_sentence(terse_optimizer_status status);

// The sign of an element whose c is exactly zero. TERSE_LION_HOLD: no sign, theta does not move (terse_lion.step only).
typedef enum terse_lion_zero { TERSE_LION_MINUS = 0, TERSE_LION_PLUS = 1, TERSE_LION_HOLD = 2 } terse_lion_zero;

typedef struct terse_lion_options {
    double lr, beta1, beta2, weight_decay;
    terse_lion_zero zero;
    float gradient_scale;  // multiplies every g first, rounded to fp32, so that clipping needs no pass of its own; 1:
                           // no clipping
} terse_lion_options;

enum { TERSE_TALLY_MAX_RANKS = 1024 };

// Lion (Chen et al. 2023, Algorithm 2): the whole step, and the two halves of Lion Cub's step, between which the ranks
// vote.
typedef struct terse_lion {
    const char *implementation;  // "scalar", "avx2", ...

    // g = g gradient_scale;  c = beta1 m + (1 - beta1) g;  wire = sign(c);  m = beta2 m + (1 - beta2) g
    // wire: (n + 7) / 8 bytes, pads 0. Uses beta1, beta2, zero and gradient_scale of the options.
    size_t (*vote)(uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options);

    // c and m as above, for messages of more than one bit. Elements that are not finite are written as they are.
    void (*mix)(float *c, float *m, const float *g, size_t n, const terse_lion_options *options);

    // c and m as above;  theta = theta keep + (+-scale), where keep = 1 - lr weight_decay and scale = -lr
    size_t (*step)(float *theta, float *m, const float *g, size_t n, const terse_lion_options *options);

    // theta = theta keep + (+-scale)
    void (*apply_signs)(float *theta, const uint8_t *wire, size_t n, float keep, float scale);

    // The same; theta = theta keep where nonzero is 0
    void (*apply_ternary)(float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep, float scale);

    // c = number of plus votes of `ranks`; planes[k] = bit k of c, with as many planes as ranks has bits
    // theta = theta keep + ((2 c - ranks) / ranks) scale
    terse_optimizer_status (*apply_tally)(float *theta, const uint8_t *const *planes, size_t ranks, size_t n,
                                          float keep, float scale);
} terse_lion;

// The same functions of `lion`, on threads. Their results do not depend on the number of threads.
TERSE_OPTIMIZERS_API size_t terse_lion_vote(const terse_lion *lion, uint8_t *wire, float *m, const float *g, size_t n,
                                            const terse_lion_options *options);
TERSE_OPTIMIZERS_API void terse_lion_mix(const terse_lion *lion, float *c, float *m, const float *g, size_t n,
                                         const terse_lion_options *options);
TERSE_OPTIMIZERS_API void terse_lion_apply_signs(const terse_lion *lion, float *theta, const uint8_t *wire, size_t n,
                                                 float keep, float scale);

typedef struct terse_adamw_options {
    double lr, beta1, beta2, eps, weight_decay;
    uint64_t step;         // 1 for the first update
    float gradient_scale;  // as in terse_lion_options
} terse_adamw_options;

// AdamW (Loshchilov, Hutter 2019, Algorithm 2) in PyTorch's form.
typedef struct terse_adamw {
    const char *implementation;

    // g = g gradient_scale;  m = beta1 m + (1 - beta1) g;  v = beta2 v + ((1 - beta2) g) g
    // theta = theta keep - (rate m) / (sqrt(v) + epsilon) where keep = 1 - lr weight_decay, b1 = 1 - beta1^step, b2 = 1
    // - beta2^step, rate = lr sqrt(b2) / b1, epsilon = eps sqrt(b2): PyTorch's lr / b1 m / (sqrt(v) / sqrt(b2) + eps)
    // with numerator and denominator multiplied by sqrt(b2), which saves a division.
    size_t (*step)(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options);
} terse_adamw;

typedef struct terse_sgd_options {
    double lr, momentum, dampening, weight_decay;
    float gradient_scale;  // as in terse_lion_options
    int nesterov;
    int first;  // whether this is the first update: m is then set to g, as in PyTorch
} terse_sgd_options;

// SGD with momentum in the form of torch.optim.SGD.
typedef struct terse_sgd {
    const char *implementation;

    // d = g gradient_scale + weight_decay theta;  m = momentum m + (1 - dampening) d
    // u = m, or d + momentum m with nesterov, or d without m (NULL);  theta = theta - lr u
    // The returned index is that of the first u that is not finite.
    size_t (*step)(float *theta, float *m, const float *g, size_t n, const terse_sgd_options *options);
} terse_sgd;

typedef struct terse_moments_options {
    double beta1, beta2;
    float gradient_scale;  // as in terse_lion_options
} terse_moments_options;

// u = (m first) / (sqrt(v) second + eps) + weight_decay theta
// Adam's corrections are first = 1 / (1 - beta1^t) and second = 1 / sqrt(1 - beta2^t). Without corrections both are 1.
typedef struct terse_adam_update {
    double first, second, eps, weight_decay;
} terse_adam_update;

typedef struct terse_refresh_options {
    double beta1, beta2, eps;
    int root;  // whether the ratio is that of the square roots
} terse_refresh_options;

// A momentum of one magnitude: scale where the bit is 1, -scale where it is 0, 0 where that of hold is 1. (n + 7) / 8
// bytes each; hold may be NULL.
typedef struct terse_packed_momentum {
    const uint8_t *signs, *hold;
    float scale;
} terse_packed_momentum;

// The parts of LAMB, 1-bit Adam and 1-bit LAMB: between them a layer's norms are taken, or ranks average the momentum.
typedef struct terse_moments {
    const char *implementation;

    // g = g gradient_scale;  m = beta1 m + (1 - beta1) g;  v = beta2 v + ((1 - beta2) g) g
    size_t (*accumulate)(float *m, float *v, const float *g, size_t n, const terse_moments_options *options);

    // sums = the sums of theta^2 and of u^2 in fp64: partial sum j adds the elements i with i mod 16 = j, and a tree
    // adds these
    void (*squares)(const float *theta, const float *m, const float *v, size_t n, const terse_adam_update *update,
                    double sums[2]);

    // accumulate, and squares of the new m and v
    size_t (*accumulate_and_squares)(const float *theta, float *m, float *v, const float *g, size_t n,
                                     const terse_moments_options *options, const terse_adam_update *update,
                                     double sums[2]);

    // theta = theta - rate u. With a packed momentum m = that first.
    void (*apply)(float *theta, float *m, const float *v, size_t n, const terse_adam_update *update, float rate,
                  const terse_packed_momentum *packed);

    // g = (m - beta1 last) / (1 - beta1);  fresh = beta2 fresh + ((1 - beta2) g) g
    // With a packed momentum m is the last one, and becomes the packed one. Returns the largest
    // (frozen + eps) / (fresh + eps), or with `root` (sqrt(frozen) + eps) / (sqrt(fresh) + eps); 0 for n = 0.
    float (*refresh)(float *fresh, const float *frozen, float *m, const float *last, size_t n,
                     const terse_refresh_options *options, const terse_packed_momentum *packed);
} terse_moments;

// Products of factors of rank r, for Dion, and the columns of its factors. Matrices are row by row.
typedef struct terse_low_rank {
    const char *implementation;

    // Copies q (n, r) to `packed`, of packed_floats(n, r) floats, in the order in which `add` reads it.
    size_t (*packed_floats)(size_t n, size_t r);
    void (*pack)(float *packed, const float *q, size_t n, size_t r);

    // x (m, n) = x keep + (p q^T) scale, p (m, r): a sum is sum = fma(p[i][k], q[j][k], sum) for k = 0, 1, ...
    void (*add)(float *x, const float *p, const float *packed, size_t m, size_t n, size_t r, float keep, float scale);

    // The columns of `columns` (n, r) get the norm 1, and are copied to q (n, r); those of at most `threshold` times
    // the largest norm become 0, and q keeps its own. Norms are added in fp64 in the order of rows; `norms` has room
    // for r of them.
    void (*normalize)(float *q, float *columns, size_t n, size_t r, double threshold, double *norms);
} terse_low_rank;

typedef struct terse_reductions {
    const char *implementation;

    // Sum of x[i]^2 in fp64. Partial sum j adds the elements i with i mod 16 = j: of every whole 4096 elements, 64 of
    // each quarter in turn, then the rest in order. A tree then adds the 16 partial sums. The order depends on n alone.
    // NaN and infinities propagate.
    double (*sum_of_squares)(const float *x, size_t n);

    // difference = a - b, and its sum of squares in the same order. `streams`: the difference goes past the caches.
    double (*difference)(float *difference, const float *a, const float *b, size_t n, int streams);
} terse_reductions;

// Sum of x[i]^2 in fp64: the sums of chunks of TERSE_REDUCTION_CHUNK elements, added in order. It does not depend on
// the number of threads.
enum { TERSE_REDUCTION_CHUNK = 1 << 16 };
double terse_sum_of_squares(const terse_reductions *reductions, const float *x, size_t n);

// difference = a - b; returns its sum of squares, in the same pass. Past the caches where they cannot hold it.
double terse_difference(const terse_reductions *reductions, float *difference, const float *a, const float *b,
                        size_t n);

// A 64-bit hash of the bits of x and their order, the same on every machine. Ranks compare their parameters by it.
uint64_t terse_fingerprint(const float *x, size_t n);

// The implementation of this name; with NULL, the one that the environment variable TERSE_IMPLEMENTATION names, else
// the best that this machine can run. The pointer is set only on TERSE_OPTIMIZER_OK.
TERSE_OPTIMIZERS_API terse_optimizer_status terse_lion_find(const terse_lion **lion, const char *implementation);
terse_optimizer_status terse_adamw_find(const terse_adamw **adamw, const char *implementation);
terse_optimizer_status terse_sgd_find(const terse_sgd **sgd, const char *implementation);
terse_optimizer_status terse_moments_find(const terse_moments **moments, const char *implementation);
terse_optimizer_status terse_low_rank_find(const terse_low_rank **low_rank, const char *implementation);
terse_optimizer_status terse_reductions_find(const terse_reductions **reductions, const char *implementation);

// Implementation i of those that this machine can run, best first. NULL past the end.
TERSE_OPTIMIZERS_API const terse_lion *terse_lion_at(size_t i);
const terse_adamw *terse_adamw_at(size_t i);
const terse_sgd *terse_sgd_at(size_t i);
const terse_moments *terse_moments_at(size_t i);
const terse_low_rank *terse_low_rank_at(size_t i);
const terse_reductions *terse_reductions_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
