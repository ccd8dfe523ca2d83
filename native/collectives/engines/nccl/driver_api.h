// The parts of the CUDA driver API that this engine uses. A symbol's suffix is the version of its arguments; these
// versions are of CUDA 3.2 to 4.1 and stay available.
#pragma once
#include <cstddef>
#include <cstdint>

namespace terse::nccl {

using CUresult = int;
using CUdevice = int;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUdeviceptr = uintptr_t;  // 64 bits wide

constexpr CUresult cuda_success = 0, cuda_not_ready = 600;
constexpr unsigned stream_non_blocking = 1;  // no implicit synchronisation with the legacy default stream
constexpr unsigned event_disable_timing = 2;

// X(name, symbol, arguments…)
#define TERSE_CUDA_DRIVER(X)                                                       \
    X(init, "cuInit", unsigned)                                                    \
    X(driver_version, "cuDriverGetVersion", int*)                                  \
    X(device_count, "cuDeviceGetCount", int*)                                      \
    X(device_get, "cuDeviceGet", CUdevice*, int)                                   \
    X(context_retain, "cuDevicePrimaryCtxRetain", CUcontext*, CUdevice)            \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", CUdevice)                   \
    X(context_push, "cuCtxPushCurrent_v2", CUcontext)                              \
    X(context_pop, "cuCtxPopCurrent_v2", CUcontext*)                               \
    X(stream_create, "cuStreamCreate", CUstream*, unsigned)                        \
    X(stream_destroy, "cuStreamDestroy_v2", CUstream)                              \
    X(stream_synchronize, "cuStreamSynchronize", CUstream)                         \
    X(stream_wait, "cuStreamWaitEvent", CUstream, CUevent, unsigned)               \
    X(event_create, "cuEventCreate", CUevent*, unsigned)                           \
    X(event_destroy, "cuEventDestroy_v2", CUevent)                                 \
    X(event_record, "cuEventRecord", CUevent, CUstream)                            \
    X(event_query, "cuEventQuery", CUevent)                                        \
    X(allocate, "cuMemAlloc_v2", CUdeviceptr*, size_t)                             \
    X(free, "cuMemFree_v2", CUdeviceptr)                                           \
    X(allocate_host, "cuMemHostAlloc", void**, size_t, unsigned)                   \
    X(free_host, "cuMemFreeHost", void*)                                           \
    X(set_bytes, "cuMemsetD8Async", CUdeviceptr, unsigned char, size_t, CUstream)  \
    X(copy_in, "cuMemcpyHtoDAsync_v2", CUdeviceptr, const void*, size_t, CUstream) \
    X(copy_out, "cuMemcpyDtoHAsync_v2", void*, CUdeviceptr, size_t, CUstream)      \
    X(copy, "cuMemcpyDtoDAsync_v2", CUdeviceptr, CUdeviceptr, size_t, CUstream)    \
    X(error_name, "cuGetErrorName", CUresult, const char**)

}  // namespace terse::nccl
