// Memory of a device: allocation, and freeing on a thread of its own once no communicator uses the memory.
#include <algorithm>

#include "engines/nccl/device.h"
#include "engines/nccl/nccl_comm.h"

namespace terse::nccl {

namespace {

constexpr auto reclaim_timeout = std::chrono::seconds(10);  // when the process ends, a kernel may hang

}  // namespace

void* Device::allocate(size_t bytes) {
    void* memory = nullptr;
    with_context([&] {
        if (nccl.MemAlloc && nccl.MemFree) {
            const Result result = nccl.MemAlloc(&memory, bytes);
            if (result != success)
                throw Failure(Reason::device, -1, std::string("ncclMemAlloc: ") + nccl.GetErrorString(result));
        } else {
            CUdeviceptr address = 0;
            check(cuda.allocate(&address, bytes), "cuMemAlloc");
            memory = reinterpret_cast<void*>(address);
        }
    });
    return memory;
}

void release(const Library& nccl, const Driver& cuda, void* memory) {
    if (nccl.MemAlloc && nccl.MemFree) nccl.MemFree(memory);
    else cuda.free(reinterpret_cast<CUdeviceptr>(memory));
}

void* Device::allocate_buffer(size_t bytes) {
    void* memory = allocate(bytes);
    std::lock_guard lock(mutex);
    buffers_[memory] = bytes;
    return memory;
}

void Device::free_buffer(void* memory) {
    std::lock_guard lock(mutex);
    const auto buffer = buffers_.find(memory);
    if (buffer == buffers_.end())
        throw Failure(Reason::argument, -1,
                      "cuda:" + std::to_string(ordinal) + " did not allocate this memory, or it is already freed");
    for (const auto& comm : comms) comm->deregister_later(comm, memory, buffer->second);
    freed_.insert(buffers_.extract(buffer));
    changed.notify_all();
}

// Passes freed memory that is no longer used to the reclaimer. True if some must still wait. The caller holds the
// mutex.
bool Device::reclaim() {
    std::erase_if(freed_, [&](const auto& freed) {
        const auto& [memory, bytes] = freed;
        const auto waits = [&](const GroupCall& each) { return use(each.calls, memory, bytes); };
        if (std::ranges::any_of(queue, waits) ||
            std::ranges::any_of(comms, [&](const auto& comm) { return comm->uses(memory, bytes); }))
            return false;
        std::lock_guard lock(reclaimer_->mutex);
        reclaimer_->memory.push_back(memory);
        reclaimer_->changed.notify_all();
        return true;
    });
    return !freed_.empty();
}

void Device::start_reclaimer() {
    run_detached("terse-nccl-free", [&nccl = nccl, &cuda = cuda, shared = reclaimer_] {
        std::unique_lock lock(shared->mutex);
        for (;;) {
            shared->changed.wait(lock, [&] { return !shared->memory.empty() || shared->ending; });
            if (shared->memory.empty()) break;
            void* memory = shared->memory.front();
            shared->memory.pop_front();
            lock.unlock();
            release(nccl, cuda, memory);
            lock.lock();
        }
        shared->over = true;
        shared->changed.notify_all();
    });
}

bool Device::stop_reclaimer() {
    std::unique_lock lock(reclaimer_->mutex);
    reclaimer_->ending = true;
    reclaimer_->changed.notify_all();
    return reclaimer_->changed.wait_for(lock, reclaim_timeout, [&] { return reclaimer_->over; });
}

}  // namespace terse::nccl
