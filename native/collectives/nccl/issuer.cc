#include "issuer.h"

#include <pthread.h>

#include <algorithm>

#include "member.h"

namespace terse::nccl {

using collectives::Failure;
using collectives::Reason;

namespace {

constexpr auto reclaim_patience = std::chrono::seconds(10);  // the process may be ending, with a kernel that does not

}  // namespace

Issuer::Issuer(const Library& nccl, const Driver& cuda, int device) : nccl(nccl), cuda(cuda), device(device) {
    if (device < 0 || device >= cuda.devices)
        throw std::runtime_error("there is no cuda:" + std::to_string(device) + "; this process sees " + std::to_string(cuda.devices) + " (CUDA_VISIBLE_DEVICES chooses among them)");
    check(cuda.device_get(&cuda_device_, device), "cuDeviceGet");
    // The primary context is the one that libtorch and NCCL itself use.
    check(cuda.context_retain(&context_, cuda_device_), "cuDevicePrimaryCtxRetain");
    thread_ = std::thread([this] { run(); });
    aside("terse-nccl-free", [&nccl, &cuda, shared = reclaimer_] {
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

Issuer::~Issuer() {
    {
        std::lock_guard lock(mutex);
        ending_ = true;
        changed.notify_all();
    }
    thread_.join();
    std::unique_lock lock(reclaimer_->mutex);
    reclaimer_->ending = true;
    reclaimer_->changed.notify_all();
    stuck |= !reclaimer_->changed.wait_for(lock, reclaim_patience, [&] { return reclaimer_->over; });
    if (!stuck) cuda.context_release(cuda_device_);
}

void Issuer::check(CUresult result, const char* what) const {
    if (result == cuda_success) return;
    const char* name = nullptr;
    cuda.error_name(result, &name);
    throw Failure(Reason::device, -1, std::string(what) + " on cuda:" + std::to_string(device) + ": " + (name ? name : "CUDA error " + std::to_string(result)));
}

CUevent Issuer::take_event() {
    {
        std::lock_guard lock(events_mutex_);
        if (!events_.empty()) {
            const CUevent event = events_.back();
            events_.pop_back();
            return event;
        }
    }
    CUevent event = nullptr;
    check(cuda.event_create(&event, event_disable_timing), "cuEventCreate");
    return event;
}

void Issuer::give_event(CUevent event) {
    if (!event) return;
    std::lock_guard lock(events_mutex_);
    events_.push_back(event);
}

// Other threads have a context of their own, or none.
void Issuer::with_context(const std::function<void()>& what) {
    check(cuda.context_push(context_), "cuCtxPushCurrent");
    struct Pop {
        const Driver& cuda;
        ~Pop() {
            CUcontext popped;
            cuda.context_pop(&popped);
        }
    } pop{cuda};
    what();
}

CUevent Issuer::mark(CUstream stream) {
    CUevent event = nullptr;
    with_context([&] {
        event = take_event();
        check(cuda.event_record(event, stream), "cuEventRecord on the caller's stream");
    });
    return event;
}

void* Issuer::allocate(size_t bytes) {
    void* memory = nullptr;
    with_context([&] {
        if (nccl.MemAlloc && nccl.MemFree) {
            const Result result = nccl.MemAlloc(&memory, bytes);
            if (result != success) throw Failure(Reason::device, -1, std::string("ncclMemAlloc: ") + nccl.GetErrorString(result));
        } else {
            CUdeviceptr address = 0;
            check(cuda.allocate(&address, bytes), "cuMemAlloc");
            memory = reinterpret_cast<void*>(address);
        }
    });
    return memory;
}

void release(const Library& nccl, const Driver& cuda, void* memory) {
    if (nccl.MemAlloc && nccl.MemFree)
        nccl.MemFree(memory);
    else
        cuda.free(reinterpret_cast<CUdeviceptr>(memory));
}

void* Issuer::lend(size_t bytes) {
    void* memory = allocate(bytes);
    std::lock_guard lock(mutex);
    lent_[memory] = bytes;
    return memory;
}

void Issuer::free(void* memory) {
    std::lock_guard lock(mutex);
    const auto lent = lent_.find(memory);
    if (lent == lent_.end()) throw Failure(Reason::argument, -1, "this is no memory that cuda:" + std::to_string(device) + " has given, or it has been freed already");
    for (const auto& member : members) member->forget(member, memory, lent->second);
    doomed_.insert(lent_.extract(lent));
    changed.notify_all();
}

// Hands on what nobody has registered any more. With the mutex.
bool Issuer::reap() {
    std::erase_if(doomed_, [&](const auto& doomed) {
        const auto& [memory, bytes] = doomed;
        if (std::ranges::any_of(members, [&](const auto& member) { return member->holds(memory, bytes); })) return false;
        std::lock_guard lock(reclaimer_->mutex);
        reclaimer_->memory.push_back(memory);
        reclaimer_->changed.notify_all();
        return true;
    });
    return !doomed_.empty();
}

void Issuer::aside(const char* name, std::function<void()> what) const {
    std::thread([&cuda = cuda, context = context_, name, what = std::move(what)] {
        pthread_setname_np(pthread_self(), name);
        cuda.context_push(context);
        what();
        CUcontext popped;
        cuda.context_pop(&popped);
    }).detach();
}

bool Issuer::is_idle() const {
    return std::ranges::none_of(members, [](const auto& member) { return member->is_busy(); });
}

// The head of the queue, if its member can take it. Nothing overtakes it.
bool Issuer::issue() {
    Request request;
    {
        std::lock_guard lock(mutex);
        if (queue.empty() || !queue.front().member->may_begin(queue.front())) return false;
        // A launch that NCCL has not taken yet would be overtaken by that of another communicator.
        if (std::ranges::any_of(members, [](const auto& member) { return member->is_launching(); })) return false;
        request = std::move(queue.front());
        queue.pop_front();
        request.member->bind(request);
    }
    const auto member = request.member;
    member->begin(std::move(request));
    return true;
}

void Issuer::run() {
    pthread_setname_np(pthread_self(), "terse-nccl");
    cuda.context_push(context_);
    constexpr auto shortest = std::chrono::microseconds(5), longest = std::chrono::microseconds(200);
    auto pause = shortest;
    for (;;) {
        std::vector<std::shared_ptr<Member>> all;
        {
            std::lock_guard lock(mutex);
            if (ending_)
                for (const auto& member : members) member->leave();
            all = members;
        }
        bool progress = false, waits = false;
        for (const auto& member : all) progress |= member->advance();
        while (issue()) progress = true;
        std::unique_lock lock(mutex);
        std::erase_if(members, [](const auto& member) { return member->is_gone(); });
        if (ending_ && members.empty()) break;
        waits = reap();
        for (const auto& member : members) waits |= member->waits();
        if (progress) {
            pause = shortest;
        } else if (waits || !queue.empty() || ending_) {
            changed.wait_for(lock, pause);
            pause = std::min(2 * pause, longest);
        } else {
            changed.wait(lock);
            pause = shortest;
        }
    }
    for (const CUevent event : events_) cuda.event_destroy(event);
    CUcontext popped;
    cuda.context_pop(&popped);
}

}  // namespace terse::nccl
