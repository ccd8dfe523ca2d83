// The arithmetic of one element stands in <kernels>/element.h: the loops of a CPU and the kernels of a GPU both use it,
// so they give the same bits. Every operation is rounded to fp32 on its own.
#ifndef TERSE_ELEMENT_H
#define TERSE_ELEMENT_H
#include <math.h>

#if defined(__cplusplus)
#define TERSE_ELEMENT __host__ __device__ inline
#else
#define TERSE_ELEMENT static inline
#endif

// Whether x is neither NaN nor infinite.
TERSE_ELEMENT int is_real(float x) { return x - x == 0.0f; }

#endif
