// The part of CUDA that the kernels use, on the CPU: found instead of NVIDIA's <cuda_runtime.h>, it lets the very same
// .cu files compile as C++. It is for tests: the order of all threads is drawn anew each time, so that a missing
// barrier shows, and what CUDA leaves undefined ends the program with a sentence (lanes that disagree about a shuffle,
// a barrier that a thread never reaches).
//
// The threads of a block are fibers of one thread of the CPU; they change places only in collectives (shuffles, votes,
// barriers).
#ifndef TERSE_EMULATED_CUDA_RUNTIME_H
#define TERSE_EMULATED_CUDA_RUNTIME_H
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __shared__ static  // blocks run one after another
#define __grid_constant__
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {
enum collective { BALLOT, SHUFFLE, SYNC_WARP, SYNC_THREADS, REDUCE };
// Waits for all lanes of the mask; what each of them brought. Valid until this lane's next collective.
const uint64_t *gather(unsigned mask, collective kind, uint64_t value);
void sync_threads();
void run(const dim3 &grid, const dim3 &block, const std::function<void()> &kernel);
unsigned lane();
[[noreturn]] void fail(const char *sentence);

template <class T>
uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T>
T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T>
T shuffle(unsigned mask, T value, unsigned from, unsigned width) {
    if (width == 0 || width > 32 || (width & (width - 1))) fail("a shuffle's width must be a power of 2 up to 32");
    const uint64_t *all = gather(mask, SHUFFLE, to_bits(value));
    if (!(mask >> from & 1)) fail("a shuffle reads a lane that is not in its mask");
    return from_bits<T>(all[from]);
}
}  // namespace emulator

inline void __syncthreads() { emulator::sync_threads(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulator::gather(mask, emulator::SYNC_WARP, 0); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    const uint64_t *all = emulator::gather(mask, emulator::BALLOT, predicate != 0);
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        if (mask >> lane & 1) ballot |= (unsigned)all[lane] << lane;
    return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    const unsigned lane = emulator::lane();
    return emulator::shuffle(mask, value, lane / width * width + (unsigned)from % width, width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32) {
    const unsigned lane = emulator::lane(), from = lane ^ with;
    return emulator::shuffle(mask, value, from / width == lane / width ? from : lane, width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned lane = emulator::lane();
    return emulator::shuffle(mask, value, lane % width >= by ? lane - by : lane, width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    const unsigned lane = emulator::lane();
    return emulator::shuffle(mask, value, lane % width + by < (unsigned)width ? lane + by : lane, width);
}
inline void __threadfence() {}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    const uint64_t *all = emulator::gather(mask, emulator::REDUCE, value);
    unsigned sum = 0;
    for (unsigned lane = 0; lane < 32; lane++)
        if (mask >> lane & 1) sum += (unsigned)all[lane];
    return sum;
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    const uint64_t *all = emulator::gather(mask, emulator::REDUCE, value);
    for (unsigned lane = 0; lane < 32; lane++)
        if (mask >> lane & 1 && all[lane] > value) value = (unsigned)all[lane];
    return value;
}

template <class T>
T exchanged(T *at, T with) {
    const T before = *at;
    *at = with;
    return before;
}
template <class T>
T atomicMin(T *at, T value) {
    return exchanged(at, *at < value ? *at : value);
}
template <class T>
T atomicMax(T *at, T value) {
    return exchanged(at, *at > value ? *at : value);
}
template <class T>
T atomicAdd(T *at, T value) {
    return exchanged(at, (T)(*at + value));
}
template <class T>
T atomicOr(T *at, T value) {
    return exchanged(at, (T)(*at | value));
}

inline unsigned __float_as_uint(float x) { return emulator::from_bits<unsigned>(emulator::to_bits(x)); }
inline float __uint_as_float(unsigned x) { return emulator::from_bits<float>(emulator::to_bits(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline int __double2loint(double x) { return (int)(unsigned)emulator::to_bits(x); }
inline double __hiloint2double(int high, int low) {
    return emulator::from_bits<double>((uint64_t)(unsigned)high << 32 | (unsigned)low);
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevice = 101
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
typedef struct emulated_stream *cudaStream_t;
struct cudaFuncAttributes {
    int numRegs;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};

inline const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess ? "no error" : "an emulated error";
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaMalloc(void **to, size_t bytes) {
    return (*to = std::malloc(bytes ? bytes : 1)) ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T>
cudaError_t cudaMalloc(T **to, size_t bytes) {
    return cudaMalloc((void **)to, bytes);
}
inline cudaError_t cudaMallocHost(void **to, size_t bytes) { return cudaMalloc(to, bytes); }
inline cudaError_t cudaFreeHost(void *p) { return std::free(p), cudaSuccess; }
inline cudaError_t cudaFree(void *p) { return std::free(p), cudaSuccess; }
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    if (bytes) std::memcpy(to, from, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
inline cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t) {
    if (bytes) std::memset(to, byte, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemset(void *to, int byte, size_t bytes) { return cudaMemsetAsync(to, byte, bytes, nullptr); }
inline cudaError_t cudaStreamCreate(cudaStream_t *stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, Kernel) {
    return *attributes = {}, cudaSuccess;
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments &&...arguments) {
    const dim3 grid = config->gridDim, block = config->blockDim;
    const size_t threads = (size_t)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 || !threads ||
        threads > 1024)
        return cudaErrorInvalidConfiguration;
    static_assert((sizeof(Parameters) + ... + 0) <= 32764, "a kernel takes at most 32764 bytes of arguments");
    emulator::run(grid, block, [&] { kernel(static_cast<Parameters>(arguments)...); });
    return cudaSuccess;
}

#endif
