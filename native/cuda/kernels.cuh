// What all kernels share: how they are launched, and how they load, store and refuse.
//
// A kernel's unit of work is the piece of the vector that one warp (or one thread) processes at a time. A launch has
// one warp (thread) per unit, up to TERSE_MOST_BLOCKS blocks, which then stride over the rest. Loads of 16 bytes need
// addresses that are multiples of 16: kernels use them if all arrays of a call allow it, and read elements one by one
// otherwise and at the end.
#ifndef TERSE_KERNELS_CUH
#define TERSE_KERNELS_CUH
#include <cstdint>
#include <cuda_runtime.h>

constexpr unsigned WARP = 32, EVERY_LANE = 0xffffffffu;
#ifndef TERSE_MOST_BLOCKS
#define TERSE_MOST_BLOCKS (1 << 20)  // the emulated checks take 2, so that kernels stride
#endif

template <class... Parameters, class... Arguments>
cudaError_t launch_kernel(void (*kernel)(Parameters...), size_t blocks, unsigned threads, void *stream,
                          Arguments... arguments) {
    if (blocks == 0) return cudaSuccess;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(blocks < TERSE_MOST_BLOCKS ? blocks : TERSE_MOST_BLOCKS));
    config.blockDim = dim3(threads);
    config.stream = (cudaStream_t)stream;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
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
__device__ inline unsigned larger(unsigned a, unsigned b) { return a > b ? a : b; }

// *bad = the first element that any thread refused.
__device__ inline void refuse(uint64_t *bad, size_t i) { atomicMin((unsigned long long *)bad, (unsigned long long)i); }

#endif
