#include "engines/nccl/device.h"

#include <pthread.h>

#include <algorithm>

#include "engines/nccl/nccl_comm.h"
#include "terse/start_thread.h"

namespace terse::nccl {

Device::Device(const Library& nccl, const Driver& cuda, int ordinal) : nccl(nccl), cuda(cuda), ordinal(ordinal) {
    if (ordinal < 0 || ordinal >= cuda.devices)
        throw std::runtime_error("there is no cuda:" + std::to_string(ordinal) + "; this process sees " +
                                 std::to_string(cuda.devices) + " (CUDA_VISIBLE_DEVICES chooses among them)");
    check(cuda.device_get(&cuda_device_, ordinal), "cuDeviceGet");
    // libtorch and NCCL use the primary context too.
    check(cuda.context_retain(&context_, cuda_device_), "cuDevicePrimaryCtxRetain");
    thread_ = start_thread([this] { run(); });
    start_reclaimer();
}

Device::~Device() {
    {
        std::lock_guard lock(mutex);
        ending_ = true;
        changed.notify_all();
    }
    thread_.join();
    stuck |= !stop_reclaimer();
    if (!stuck) cuda.context_release(cuda_device_);
}

void Device::check(CUresult result, const char* what) const {
    if (result == cuda_success) return;
    throw Failure(Reason::device, -1,
                  std::string(what) + " on cuda:" + std::to_string(ordinal) + ": " + name_of(cuda, result));
}

CUevent Device::take_event() {
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

void Device::return_event(CUevent event) {
    if (!event) return;
    std::lock_guard lock(events_mutex_);
    events_.push_back(event);
}

// The calling thread may have another context, or none.
void Device::with_context(const std::function<void()>& what) {
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

CUevent Device::record_event(CUstream stream) {
    CUevent event = nullptr;
    with_context([&] {
        event = take_event();
        check(cuda.event_record(event, stream), "cuEventRecord on the caller's stream");
    });
    return event;
}

void Device::run_detached(const char* thread_name, std::function<void()> what) const {
    std::thread([&cuda = cuda, context = context_, thread_name, what = std::move(what)] {
        pthread_setname_np(pthread_self(), thread_name);
        cuda.context_push(context);
        what();
        CUcontext popped;
        cuda.context_pop(&popped);
    }).detach();
}

bool Device::is_idle() const {
    return std::ranges::none_of(comms, [](const auto& comm) { return comm->is_busy(); });
}

// Starts the group call at the head of the queue if its communicator can take it. No other group call overtakes it.
bool Device::start_next() {
    GroupCall group_call;
    {
        std::lock_guard lock(mutex);
        if (queue.empty() || !queue.front().comm->may_start(queue.front())) return false;
        // The launch of another communicator could overtake one that NCCL has not taken yet.
        if (std::ranges::any_of(comms, [](const auto& comm) { return comm->is_launching(); })) return false;
        group_call = std::move(queue.front());
        queue.pop_front();
        group_call.comm->mark_started(group_call);
    }
    const auto comm = group_call.comm;
    comm->start(std::move(group_call));
    return true;
}

void Device::run() {
    pthread_setname_np(pthread_self(), "terse-nccl");
    cuda.context_push(context_);
    constexpr auto shortest = std::chrono::microseconds(5), longest = std::chrono::microseconds(200);
    auto pause = shortest;
    for (;;) {
        std::vector<std::shared_ptr<NcclComm>> all;
        {
            std::lock_guard lock(mutex);
            if (ending_)
                for (const auto& comm : comms) comm->abandon();
            all = comms;
        }
        bool progress = false, polls = false;
        for (const auto& comm : all) progress |= comm->advance();
        while (start_next()) progress = true;
        std::unique_lock lock(mutex);
        std::erase_if(comms, [](const auto& comm) { return comm->is_gone(); });
        polls = reclaim();
        if (ending_ && comms.empty()) break;
        for (const auto& comm : comms) polls |= comm->needs_polling();
        if (progress) {
            pause = shortest;
        } else if (polls || !queue.empty() || ending_) {
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
