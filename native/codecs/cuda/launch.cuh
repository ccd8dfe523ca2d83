// What the kernels of codecs share, in addition to kernels.cuh.
#ifndef TERSE_LAUNCH_CUH
#define TERSE_LAUNCH_CUH
#include "kernels.cuh"
#include "terse/codecs_cuda.h"

inline thread_local cudaError_t last_cuda_error = cudaSuccess;  // for terse_codecs_cuda_error

inline terse_codec_status terse_cuda_status(cudaError_t error) {
    if (error == cudaSuccess) return TERSE_CODEC_OK;
    cudaGetLastError();  // clears the error, so that the next call of CUDA does not report it again
    last_cuda_error = error;
    return TERSE_CODEC_UNAVAILABLE;
}

template <class... Parameters, class... Arguments>
terse_codec_status launch(void (*kernel)(Parameters...), size_t blocks, unsigned threads, void *stream,
                          Arguments... arguments) {
    return terse_cuda_status(launch_kernel(kernel, blocks, threads, stream, arguments...));
}

// Floats on the wire begin anywhere.
__device__ inline float float_on_wire(const uint8_t *at) {
    return __uint_as_float(at[0] | (unsigned)at[1] << 8 | (unsigned)at[2] << 16 | (unsigned)at[3] << 24);
}

// Converts doubles to whole numbers and back by additions: conversions of 64 bits have a quarter of the throughput or
// less.
__device__ inline int nearest_whole(double v) { return __double2loint(v + 0x1.8p52); }  // |v| < 2^31; ties to even
__device__ inline double as_double(unsigned whole) { return __hiloint2double(0x43300000, (int)whole) - 0x1p52; }

// *bad = *other, if *bad is good.
[[maybe_unused]] static __global__ void refuse_too(uint64_t *bad, const uint64_t *other) {
    if (first_thread() == 0 && *bad == TERSE_CODEC_CUDA_GOOD) *bad = *other;
}

// Rare: after a magnitude above `most`, finds the element by reading one by one.
__device__ inline void refuse_first(uint64_t *bad, const float *x, size_t begin, size_t end,
                                    unsigned most = INFINITE - 1) {
    for (size_t i = begin; i < end; i++)
        if (magnitude_bits(x[i]) > most) {
            refuse(bad, i);
            return;
        }
}

#endif
