// The parts of NCCL's API that this engine uses, declared here so that the build needs no nccl.h. As of 2.30.7; the
// numbers have not changed since 2.18. The second table lists newer functions, which may be absent.
#pragma once
#include <cstddef>
#include <cstdint>

namespace terse::nccl {

using Comm = struct ncclComm*;
using Stream = struct CUstream_st*;  // the driver's and the runtime's stream are the same type

struct UniqueId {
    char internal[128];  // passed by value
};

// C enums of 32 bits. NCCL may return a number that is not listed here.
enum Result : uint32_t {
    success = 0,
    unhandled_cuda_error,
    system_error,
    internal_error,
    invalid_argument,
    invalid_usage,
    remote_error,
    in_progress
};
enum class Reduce : uint32_t { sum = 0, prod, max, min, avg };
enum class Type : uint32_t { i8 = 0, u8, i32, u32, i64, u64, f16, f32, f64, bf16 };

constexpr int no_color = -1;  // the color of a rank that joins no new group (NCCL_SPLIT_NOCOLOR)

struct Config;  // config.h

// X(name without "nccl", result, arguments…)
#define TERSE_NCCL_REQUIRED(X)                                                                  \
    X(GetVersion, Result, int*)                                                                 \
    X(GetUniqueId, Result, UniqueId*)                                                           \
    X(CommInitRankConfig, Result, Comm*, int, UniqueId, int, Config*)                           \
    X(CommFinalize, Result, Comm)                                                               \
    X(CommDestroy, Result, Comm)                                                                \
    X(CommAbort, Result, Comm)                                                                  \
    X(CommGetAsyncError, Result, Comm, Result*)                                                 \
    X(CommCuDevice, Result, Comm, int*)                                                         \
    X(GetErrorString, const char*, Result)                                                      \
    X(GetLastError, const char*, Comm)                                                          \
    X(GroupStart, Result)                                                                       \
    X(GroupEnd, Result)                                                                         \
    X(AllReduce, Result, const void*, void*, size_t, Type, Reduce, Comm, Stream)                \
    X(ReduceScatter, Result, const void*, void*, size_t, Type, Reduce, Comm, Stream)            \
    X(Reduce, Result, const void*, void*, size_t, Type, terse::nccl::Reduce, int, Comm, Stream) \
    X(AllGather, Result, const void*, void*, size_t, Type, Comm, Stream)                        \
    X(Broadcast, Result, const void*, void*, size_t, Type, int, Comm, Stream)                   \
    X(Send, Result, const void*, size_t, Type, int, Comm, Stream)                               \
    X(Recv, Result, void*, size_t, Type, int, Comm, Stream)

#define TERSE_NCCL_OPTIONAL(X)                                                     \
    X(CommSplit, Result, Comm, int, int, Comm*, Config*)                /* 2.18 */ \
    X(AlltoAll, Result, const void*, void*, size_t, Type, Comm, Stream) /* 2.28 */ \
    X(MemAlloc, Result, void**, size_t)                                 /* 2.19 */ \
    X(MemFree, Result, void*)                                           /* 2.19 */ \
    X(CommRegister, Result, Comm, void*, size_t, void**)                /* 2.19 */ \
    X(CommDeregister, Result, Comm, void*)                              /* 2.19 */

}  // namespace terse::nccl
