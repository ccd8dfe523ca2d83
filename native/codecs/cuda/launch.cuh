// What all kernels share: how they are launched, and how they load, store and refuse.
//
// A kernel's unit of work is a piece of the vector that one warp (or one thread) does at a time; launches have a warp (thread) for
// every unit up to TERSE_MOST_BLOCKS, and stride over the rest. Vectors of 16 bytes need addresses that are multiples of 16: kernels take
// them where all arrays of a call allow it, and the same elements one by one elsewhere and at the end.
#ifndef TERSE_LAUNCH_CUH
#define TERSE_LAUNCH_CUH
#include <cuda_runtime.h>

#include "terse/codecs_cuda.h"

constexpr unsigned WARP = 32, EVERY_LANE = 0xffffffffu;
#ifndef TERSE_MOST_BLOCKS
#define TERSE_MOST_BLOCKS (1 << 20)  // the emulated checks take 2, so that kernels stride
#endif

inline thread_local cudaError_t last_cuda_error = cudaSuccess;  // for terse_codecs_cuda_error

inline terse_codec_status terse_cuda_status(cudaError_t error) {
    if (error == cudaSuccess) return TERSE_CODEC_OK;
    cudaGetLastError();  // it was reported here: the next call of anybody does not find it again
    last_cuda_error = error;
    return TERSE_CODEC_NOT_HERE;
}

template <class... Parameters, class... Arguments>
terse_codec_status launch(void (*kernel)(Parameters...), size_t blocks, unsigned threads, void *stream, Arguments... arguments) {
    if (blocks == 0) return TERSE_CODEC_OK;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(blocks < TERSE_MOST_BLOCKS ? blocks : TERSE_MOST_BLOCKS));
    config.blockDim = dim3(threads);
    config.stream = (cudaStream_t)stream;
    return terse_cuda_status(cudaLaunchKernelEx(&config, kernel, arguments...));
}

__host__ __device__ inline size_t divided_up(size_t n, size_t by) { return n / by + (n % by != 0); }

// True where all addresses are multiples of `bytes`.
template <class... Pointers>
inline bool multiples_of(size_t bytes, Pointers... pointers) {
    return ((uintptr_t)0 | ... | (uintptr_t)pointers) % bytes == 0;
}

__device__ inline unsigned lane_of_warp() { return threadIdx.x % WARP; }
__device__ inline size_t first_warp() { return (size_t)blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP; }
__device__ inline size_t all_warps() { return (size_t)gridDim.x * (blockDim.x / WARP); }
__device__ inline size_t first_thread() { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline size_t all_threads() { return (size_t)gridDim.x * blockDim.x; }

// Magnitudes order like their bits; infinities and NaN lie at and above INFINITE.
constexpr unsigned INFINITE = 0x7f800000u;
__device__ inline unsigned magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// Floats on the wire begin anywhere.
__device__ inline float float_on_wire(const uint8_t *at) { return __uint_as_float(at[0] | (unsigned)at[1] << 8 | (unsigned)at[2] << 16 | (unsigned)at[3] << 24); }

__device__ inline unsigned larger(unsigned a, unsigned b) { return a > b ? a : b; }

// Between doubles and whole numbers by additions: conversions of 64 bits have a quarter of the throughput or less.
__device__ inline int nearest_whole(double v) { return __double2loint(v + 0x1.8p52); }  // |v| < 2^31; ties to even
__device__ inline double as_double(unsigned whole) { return __hiloint2double(0x43300000, (int)whole) - 0x1p52; }

// *bad = the first element that anybody refused.
__device__ inline void refuse(uint64_t *bad, size_t i) { atomicMin((unsigned long long *)bad, (unsigned long long)i); }

// *bad = *other, where nothing else is bad.
[[maybe_unused]] static __global__ void refuse_too(uint64_t *bad, const uint64_t *other) {
    if (first_thread() == 0 && *bad == TERSE_CODEC_CUDA_GOOD) *bad = *other;
}

// Rare: who has met a magnitude above `most` looks again, one by one, which it was.
__device__ inline void refuse_first(uint64_t *bad, const float *x, size_t begin, size_t end, unsigned most = INFINITE - 1) {
    for (size_t i = begin; i < end; i++)
        if (magnitude_bits(x[i]) > most) {
            refuse(bad, i);
            return;
        }
}

#endif
