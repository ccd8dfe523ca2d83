// A CUDA driver without a device, for tests, with 16 devices. Device memory is CPU memory, and a stream is a thread. It
// refuses what the real driver refuses: calls without a context, addresses that it has not allocated, and freeing
// memory that a communicator has registered. Freeing memory and allocating pinned memory wait for everything that runs
// on the device, as they may on a real one.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "stream.h"

namespace {

enum {
    success = 0,
    invalid_value = 1,
    invalid_device = 101,
    invalid_context = 201,
    not_ready = 600,
    illegal_address = 700
};

struct Context {
    int device;
};
Context contexts[16];
int retained[16];
thread_local std::vector<Context*> current;

struct Event {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t recorded = 0, reached = 0;

    void reach(uint64_t number) {
        std::lock_guard lock(mutex);
        reached = std::max(reached, number);  // it may have been recorded again on another stream
        changed.notify_all();
    }
    void wait_for(uint64_t number) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return reached >= number; });
    }
};

struct Load {
    std::mutex mutex;
    std::condition_variable changed;
    int tasks = 0;
} loads[16];  // tasks on the streams of each device

std::atomic<bool> broken = false;
std::atomic<int> counts[4];

struct Stream final : CUstream_st {
    explicit Stream(int device) : load(loads[device]), thread([this] { run(); }) {}
    Load& load;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    bool ending = false;
    std::thread thread;

    void add(int tasks) {
        std::lock_guard lock(load.mutex);
        load.tasks += tasks;
        load.changed.notify_all();
    }
    void enqueue(std::function<void()> task) override {
        add(1);
        std::lock_guard lock(mutex);
        tasks.push_back(std::move(task));
        changed.notify_all();
    }
    void run() {
        for (;;) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return !tasks.empty() || ending; });
            if (tasks.empty()) return;
            const auto task = std::move(tasks.front());
            tasks.pop_front();
            lock.unlock();
            task();
            add(-1);
        }
    }
};

CUstream_st& of(CUstream_st* stream) {
    static auto* standard = [] {  // one default stream for each device; never joined, like the real ones
        auto* streams = new std::vector<Stream*>;
        for (int device = 0; device < 16; device++) streams->push_back(new Stream(device));
        return streams;
    }();
    return stream ? *stream : *(*standard)[current.back()->device];
}

std::mutex memory_mutex;
std::map<uintptr_t, size_t> allocations, host_allocations;
std::map<uintptr_t, int> held;  // registrations of an allocation

bool owns(const std::map<uintptr_t, size_t>& map, const void* memory, size_t bytes) {
    std::lock_guard lock(memory_mutex);
    const auto at = reinterpret_cast<uintptr_t>(memory);
    auto next = map.upper_bound(at);
    if (next == map.begin()) return false;
    --next;
    return at + bytes <= next->first + next->second;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define NEEDS_CONTEXT \
    if (current.empty()) return invalid_context

// With FAKE_CUDA_ANY_MEMORY the device's memory is all of the CPU's: tests take a tensor of the CPU for one of the
// device.
EXPORT bool fake_cuda_owns(const void* memory, size_t bytes) {
    return std::getenv("FAKE_CUDA_ANY_MEMORY") || owns(allocations, memory, bytes);
}
EXPORT void fake_cuda_synchronize(int device) {
    std::unique_lock lock(loads[device].mutex);
    loads[device].changed.wait(lock, [&] { return loads[device].tasks == 0; });
}
EXPORT void fake_cuda_break(bool breaks) { broken = breaks; }
EXPORT void fake_cuda_count(Counted what, int by) { counts[static_cast<int>(what)] += by; }
EXPORT int fake_cuda_counted(Counted what) {
    if (what != Counted::memory) return counts[static_cast<int>(what)];
    std::lock_guard lock(memory_mutex);
    return static_cast<int>(allocations.size());
}
EXPORT void fake_cuda_hold(const void* memory, bool holds) {
    std::lock_guard lock(memory_mutex);
    auto next = allocations.upper_bound(reinterpret_cast<uintptr_t>(memory));
    if (next != allocations.begin()) held[(--next)->first] += holds ? 1 : -1;
}
EXPORT int fake_cuda_current_device() { return current.empty() ? -1 : current.back()->device; }

EXPORT int cuInit(unsigned) { return std::getenv("FAKE_CUDA_ABSENT") ? 100 : success; }
EXPORT int cuDriverGetVersion(int* version) { return *version = 13000, success; }
EXPORT int cuDeviceGetCount(int* count) { return *count = 16, success; }
EXPORT int cuDeviceGet(int* device, int ordinal) {
    return ordinal < 0 || ordinal > 15 ? invalid_device : (*device = ordinal, success);
}

EXPORT int cuDevicePrimaryCtxRetain(Context** context, int device) {
    std::lock_guard lock(memory_mutex);
    retained[device]++;
    contexts[device].device = device;
    *context = &contexts[device];
    return success;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    std::lock_guard lock(memory_mutex);
    return retained[device]-- > 0 ? success : invalid_context;
}
EXPORT int cuCtxPushCurrent_v2(Context* context) { return current.push_back(context), success; }
EXPORT int cuCtxPopCurrent_v2(Context** context) {
    NEEDS_CONTEXT;
    *context = current.back();
    current.pop_back();
    return success;
}

EXPORT int cuStreamCreate(CUstream_st** stream, unsigned) {
    NEEDS_CONTEXT;
    return *stream = new Stream(current.back()->device), success;
}
EXPORT int cuStreamDestroy_v2(CUstream_st* handle) {
    NEEDS_CONTEXT;
    auto* stream = static_cast<Stream*>(handle);
    {
        std::lock_guard lock(stream->mutex);
        stream->ending = true;
        stream->changed.notify_all();
    }
    stream->thread.join();
    delete stream;
    return success;
}
EXPORT int cuStreamSynchronize(CUstream_st* stream) {
    NEEDS_CONTEXT;
    const auto end = std::make_shared<Event>();
    of(stream).enqueue([=] { end->reach(1); });
    end->wait_for(1);
    return broken ? illegal_address : success;
}
EXPORT int cuStreamWaitEvent(CUstream_st* stream, Event* event, unsigned) {
    NEEDS_CONTEXT;
    std::lock_guard lock(event->mutex);
    of(stream).enqueue([event, target = event->recorded] { event->wait_for(target); });
    return success;
}

EXPORT int cuEventCreate(Event** event, unsigned) {
    NEEDS_CONTEXT;
    return *event = new Event, success;
}
EXPORT int cuEventDestroy_v2(Event*) { return success; }  // a stream may still wait for it
EXPORT int cuEventRecord(Event* event, CUstream_st* stream) {
    NEEDS_CONTEXT;
    std::lock_guard lock(event->mutex);
    of(stream).enqueue([event, number = ++event->recorded] { event->reach(number); });
    return success;
}
EXPORT int cuEventQuery(Event* event) {
    NEEDS_CONTEXT;
    if (broken) return illegal_address;
    std::lock_guard lock(event->mutex);
    return event->reached >= event->recorded ? success : not_ready;
}

EXPORT int cuMemAlloc_v2(uintptr_t* memory, size_t bytes) {
    NEEDS_CONTEXT;
    if (!bytes) return invalid_value;
    *memory = reinterpret_cast<uintptr_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    std::memset(reinterpret_cast<void*>(*memory), 0xA5, bytes);
    std::lock_guard lock(memory_mutex);
    allocations[*memory] = bytes;
    return success;
}
EXPORT int cuMemFree_v2(uintptr_t memory) {
    NEEDS_CONTEXT;
    if (broken) return illegal_address;
    fake_cuda_synchronize(current.back()->device);
    std::lock_guard lock(memory_mutex);
    if (held[memory] > 0) fake_cuda_count(Counted::dangling, 1);
    if (!allocations.erase(memory)) return invalid_value;
    std::free(reinterpret_cast<void*>(memory));
    return success;
}
EXPORT int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
    NEEDS_CONTEXT;
    fake_cuda_synchronize(current.back()->device);
    *memory = std::malloc(bytes);
    std::lock_guard lock(memory_mutex);
    host_allocations[reinterpret_cast<uintptr_t>(*memory)] = bytes;
    return success;
}
EXPORT int cuMemFreeHost(void* memory) {
    NEEDS_CONTEXT;
    if (broken) return illegal_address;
    fake_cuda_synchronize(current.back()->device);
    std::lock_guard lock(memory_mutex);
    if (!host_allocations.erase(reinterpret_cast<uintptr_t>(memory))) return invalid_value;
    std::free(memory);
    return success;
}

EXPORT int cuMemsetD8Async(uintptr_t memory, unsigned char value, size_t bytes, CUstream_st* stream) {
    NEEDS_CONTEXT;
    if (!fake_cuda_owns(reinterpret_cast<void*>(memory), bytes)) return invalid_value;
    of(stream).enqueue([=] { std::memset(reinterpret_cast<void*>(memory), value, bytes); });
    return success;
}
EXPORT int cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, CUstream_st* stream) {
    NEEDS_CONTEXT;
    if (!fake_cuda_owns(reinterpret_cast<void*>(to), bytes)) return invalid_value;
    of(stream).enqueue([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
    return success;
}
// A copy into memory that the driver did not allocate returns only when the copy and everything before it is done, as
// in the real driver.
EXPORT int cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, CUstream_st* stream) {
    NEEDS_CONTEXT;
    if (!fake_cuda_owns(reinterpret_cast<void*>(from), bytes)) return invalid_value;
    const auto copied = std::make_shared<Event>();
    of(stream).enqueue([=] {
        std::memcpy(to, reinterpret_cast<void*>(from), bytes);
        copied->reach(1);
    });
    if (!owns(host_allocations, to, bytes)) copied->wait_for(1);
    return success;
}
EXPORT int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, CUstream_st* stream) {
    NEEDS_CONTEXT;
    if (!fake_cuda_owns(reinterpret_cast<void*>(to), bytes) || !fake_cuda_owns(reinterpret_cast<void*>(from), bytes))
        return invalid_value;
    of(stream).enqueue([=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
    return success;
}

EXPORT int cuGetErrorName(int error, const char** name) {
    static const std::map<int, const char*> names{{1, "CUDA_ERROR_INVALID_VALUE"},
                                                  {100, "CUDA_ERROR_NO_DEVICE"},
                                                  {101, "CUDA_ERROR_INVALID_DEVICE"},
                                                  {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                  {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
    const auto found = names.find(error);
    *name = found == names.end() ? "CUDA_ERROR_UNKNOWN" : found->second;
    return success;
}
