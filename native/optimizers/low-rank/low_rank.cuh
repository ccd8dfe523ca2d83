// Products of factors of rank r on a GPU. All arrays are on the device, row by row. These functions do not wait for the
// device.
#ifndef TERSE_LOW_RANK_CUH
#define TERSE_LOW_RANK_CUH
#include "kernels.cuh"

// x (m, n) = x keep + (p q^T) scale,  p (m, r), q (n, r)
cudaError_t low_rank_add(float *x, const float *p, const float *q, size_t m, size_t n, size_t r, float keep,
                         float scale, void *stream);

// As terse_low_rank.normalize; `norms` has room for r + 1 numbers.
cudaError_t low_rank_normalize(float *q, float *columns, size_t n, size_t r, double threshold, double *norms,
                               void *stream);

#endif
