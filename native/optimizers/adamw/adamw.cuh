#ifndef TERSE_ADAMW_CUH
#define TERSE_ADAMW_CUH
#include "kernels.cuh"
#include "terse/optimizers.h"

// All arrays are on the device, and `bad` is as in lion.cuh. Does not wait for the device.
cudaError_t adamw_step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options,
                       uint64_t *bad, void *stream);

#endif
