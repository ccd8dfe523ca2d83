// Which floats the kernels of top-k look at before they look at all; the checks know it too, and mislead them.
#ifndef TERSE_TOP_K_CUH
#define TERSE_TOP_K_CUH
#include "launch.cuh"
#include "top_k.h"

#ifndef TERSE_SHORT_INDICES
#define TERSE_SHORT_INDICES ((size_t)1 << 32)  // of so many floats indices have 32 bits; the emulated checks take fewer, so that both kinds are chosen
#endif

// None of few: looking at all takes no longer.
inline size_t top_k_samples(size_t n) { return n < (1 << 16) ? 0 : n / 64 < (1 << 16) ? n / 64 : 1 << 16; }

// One of each stretch, not always the same one: floats may have a period.
__host__ __device__ inline size_t top_k_sampled(size_t sample, size_t stride) { return sample * stride + sample * 2654435761u % stride; }

#endif
