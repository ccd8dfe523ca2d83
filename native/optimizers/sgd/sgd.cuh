#ifndef TERSE_SGD_CUH
#define TERSE_SGD_CUH
#include "kernels.cuh"
#include "terse/optimizers.h"

// All arrays are on the device; m is NULL without momentum. `bad` is as in lion.cuh. Does not wait for the device.
cudaError_t sgd_step(float *theta, float *m, const float *g, size_t n, const terse_sgd_options *options, uint64_t *bad,
                     void *stream);

#endif
