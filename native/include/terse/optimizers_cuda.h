// The kernels of terse/optimizers.h on an NVIDIA GPU, with the same bits.
//
// Floats are in the memory of CUDA device `device`. Packed signs are in host memory, from where ranks send them; they
// are a 32nd of the floats' bytes. Kernels run in the device's default stream, as libtorch's do. The library,
// libterse_optimizers_cuda.so, does not link the driver: open it only where dlopen("libcuda.so.1") succeeds.
//
// A call that returns a number or writes signs waits for the device. A call that applies votes or an update does not
// wait; it has read the votes when it returns. Do not make two calls at the same time. A status other than
// TERSE_OPTIMIZER_OK means that CUDA failed; `error` says how.
#ifndef TERSE_OPTIMIZERS_CUDA_H
#define TERSE_OPTIMIZERS_CUDA_H
#include "terse/optimizers.h"
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TERSE_OPTIMIZERS_CUDA_API __attribute__((visibility("default")))
#else
#define TERSE_OPTIMIZERS_CUDA_API
#endif

#define TERSE_OPTIMIZERS_CUDA_ABI 3

// The sizes of all options together.
#define TERSE_OPTIMIZERS_CUDA_OPTIONS                                                       \
    (sizeof(terse_lion_options) + sizeof(terse_adamw_options) + sizeof(terse_sgd_options) + \
     sizeof(terse_moments_options) + sizeof(terse_adam_update) + sizeof(terse_refresh_options))

typedef struct terse_optimizers_cuda {
    uint32_t abi;                // the TERSE_OPTIMIZERS_CUDA_ABI that the library was built with
    size_t options;              // the TERSE_OPTIMIZERS_CUDA_OPTIONS that the library was built with
    const char *(*error)(void);  // CUDA's text for the last failure. Never NULL

    // As in terse_lion; *accepted is what terse_lion's functions return.
    terse_optimizer_status (*vote)(int device, uint8_t *wire, float *m, const float *g, size_t n,
                                   const terse_lion_options *options, size_t *accepted);
    terse_optimizer_status (*mix)(int device, float *c, float *m, const float *g, size_t n,
                                  const terse_lion_options *options);
    terse_optimizer_status (*step)(int device, float *theta, float *m, const float *g, size_t n,
                                   const terse_lion_options *options, size_t *accepted);
    terse_optimizer_status (*apply_signs)(int device, float *theta, const uint8_t *wire, size_t n, float keep,
                                          float scale);
    terse_optimizer_status (*apply_ternary)(int device, float *theta, const uint8_t *plus, const uint8_t *nonzero,
                                            size_t n, float keep, float scale);
    terse_optimizer_status (*apply_tally)(int device, float *theta, const uint8_t *const *planes, size_t ranks,
                                          size_t n, float keep, float scale);

    // As in terse_adamw, terse_sgd and terse_moments. `squares` adds chunks of TERSE_REDUCTION_CHUNK elements in order.
    terse_optimizer_status (*adamw_step)(int device, float *theta, float *m, float *v, const float *g, size_t n,
                                         const terse_adamw_options *options, size_t *accepted);
    terse_optimizer_status (*sgd_step)(int device, float *theta, float *m, const float *g, size_t n,
                                       const terse_sgd_options *options, size_t *accepted);
    terse_optimizer_status (*accumulate)(int device, float *m, float *v, const float *g, size_t n,
                                         const terse_moments_options *options, size_t *accepted);
    terse_optimizer_status (*squares)(int device, const float *theta, const float *m, const float *v, size_t n,
                                      const terse_adam_update *update, double sums[2]);
    terse_optimizer_status (*apply)(int device, float *theta, const float *m, const float *v, size_t n,
                                    const terse_adam_update *update, float rate);
    terse_optimizer_status (*refresh)(int device, float *fresh, const float *frozen, const float *m, const float *last,
                                      size_t n, const terse_refresh_options *options, float *most);

    // As in terse_low_rank; q and p are not packed.
    terse_optimizer_status (*low_rank_add)(int device, float *x, const float *p, const float *q, size_t m, size_t n,
                                           size_t r, float keep, float scale);
    terse_optimizer_status (*low_rank_normalize)(int device, float *q, float *columns, size_t n, size_t r,
                                                 double threshold);

    // As terse_sum_of_squares and terse_fingerprint.
    terse_optimizer_status (*sum_of_squares)(int device, const float *x, size_t n, double *sum);
    terse_optimizer_status (*fingerprint)(int device, const float *x, size_t n, uint64_t *fingerprint);
} terse_optimizers_cuda;

TERSE_OPTIMIZERS_CUDA_API const terse_optimizers_cuda *terse_optimizers_cuda_table(void);

#ifdef __cplusplus
}
#endif
#endif
