// A stream of the fake driver: a thread that runs one task after another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

struct CUstream_st {
    virtual void enqueue(std::function<void()> task) = 0;

protected:
    ~CUstream_st() = default;
};

extern "C" {
// For the fake NCCL: whether the whole range was allocated on a device.
bool fake_cuda_owns(const void* memory, size_t bytes);
int fake_cuda_current_device();          // −1: no context is current on this thread
void fake_cuda_synchronize(int device);  // waits for all of its streams

// For tests. A broken context stays broken on a real device: kernels fail, and memory cannot be freed.
void fake_cuda_break(bool breaks);
enum class Counted { communicators, dangling, memory, aborts };  // dangling: freed while it was registered
void fake_cuda_count(Counted what, int by);
int fake_cuda_counted(Counted what);
void fake_cuda_hold(const void* memory, bool holds);  // by a registration
int cuMemAlloc_v2(uintptr_t* memory, size_t bytes);
int cuMemFree_v2(uintptr_t memory);
}
