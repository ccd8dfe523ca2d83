// Kernels on Adam's moments. All arrays are on the device, and `bad` is as in lion.cuh. These functions do not wait for
// the device.
#ifndef TERSE_MOMENTS_CUH
#define TERSE_MOMENTS_CUH
#include "kernels.cuh"
#include "terse/optimizers.h"

cudaError_t moments_accumulate(float *m, float *v, const float *g, size_t n, const terse_moments_options *options,
                               uint64_t *bad, void *stream);

// sums[2 k], sums[2 k + 1]: the sums of theta^2 and u^2 of chunk k, TERSE_REDUCTION_CHUNK elements each.
cudaError_t moments_squares(double *sums, const float *theta, const float *m, const float *v, size_t n,
                            const terse_adam_update *update, void *stream);

cudaError_t moments_apply(float *theta, const float *m, const float *v, size_t n, const terse_adam_update *update,
                          float rate, void *stream);

// Set *most to 0 before; afterwards it has the bits of the largest ratio. Ratios are positive floats, whose bits order
// like they do.
cudaError_t moments_refresh(float *fresh, const float *frozen, const float *m, const float *last, size_t n,
                            const terse_refresh_options *options, unsigned *most, void *stream);

#endif
