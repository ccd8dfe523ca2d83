#ifndef TERSE_REDUCTIONS_CUH
#define TERSE_REDUCTIONS_CUH
#include "kernels.cuh"
#include "terse/optimizers.h"

// sums[chunk] = the sum of squares of each TERSE_REDUCTION_CHUNK elements of x (n), as terse_reductions has it; all on the device.
cudaError_t sums_of_squares(double *sums, const float *x, size_t n, void *stream);

#endif
