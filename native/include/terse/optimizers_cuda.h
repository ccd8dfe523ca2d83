// The kernels of terse/optimizers.h on an NVIDIA GPU: the same bits.
//
// Floats are memory of CUDA device `device`. Packed signs are memory of the host, where they come from the other ranks and go to them: a
// 32nd of the floats' bytes crosses over. Work is put into the device's default stream, as libtorch's is. The library,
// libterse_optimizers_cuda.so, links no driver: open it where dlopen("libcuda.so.1") succeeds.
//
// Calls that return numbers wait for the device; those that apply votes have read them when they return, and do not wait. One call at a
// time. Any status but TERSE_OPTIMIZER_OK: CUDA failed, and terse_optimizers_cuda_error says how.
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

#define TERSE_OPTIMIZERS_CUDA_ABI 1

typedef struct terse_optimizers_cuda {
    uint32_t abi;             // the TERSE_OPTIMIZERS_CUDA_ABI that the library was built with
    size_t lion_options;      // sizeof(terse_lion_options), of which the same is true
    const char *(*error)(void);  // what CUDA said last. Never NULL

    // As in terse_lion; *accepted as they return it.
    terse_optimizer_status (*vote)(int device, uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options, size_t *accepted);
    terse_optimizer_status (*step)(int device, float *theta, float *m, const float *g, size_t n, const terse_lion_options *options, size_t *accepted);
    terse_optimizer_status (*apply_signs)(int device, float *theta, const uint8_t *wire, size_t n, float keep, float scale);
    terse_optimizer_status (*apply_ternary)(int device, float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep, float scale);
    terse_optimizer_status (*apply_tally)(int device, float *theta, const uint8_t *const *planes, size_t ranks, size_t n, float keep, float scale);

    // As terse_sum_of_squares and terse_fingerprint.
    terse_optimizer_status (*sum_of_squares)(int device, const float *x, size_t n, double *sum);
    terse_optimizer_status (*fingerprint)(int device, const float *x, size_t n, uint64_t *fingerprint);
} terse_optimizers_cuda;

TERSE_OPTIMIZERS_CUDA_API const terse_optimizers_cuda *terse_optimizers_cuda_here(void);

#ifdef __cplusplus
}
#endif
#endif
