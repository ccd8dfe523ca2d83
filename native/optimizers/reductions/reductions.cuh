#ifndef TERSE_REDUCTIONS_CUH
#define TERSE_REDUCTIONS_CUH
#include "kernels.cuh"
#include "terse/optimizers.h"

// sums[k] = sum of squares of chunk k of x (n), TERSE_REDUCTION_CHUNK elements each, with the bits of terse_reductions.
// Both are on the device.
cudaError_t sums_of_squares(double *sums, const float *x, size_t n, void *stream);

#endif
