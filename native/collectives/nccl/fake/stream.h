// What both fakes know of a stream: a thread that does one thing after another.
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
// For the other fake: whether all of this is memory that was allocated on a device; and memory of that kind.
bool fake_cuda_owns(const void* memory, size_t bytes);
int fake_cuda_current_device();  // −1: no context is current on this thread
int cuMemAlloc_v2(uintptr_t* memory, size_t bytes);
int cuMemFree_v2(uintptr_t memory);
}
