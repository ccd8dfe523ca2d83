#include <algorithm>

#include "engines/nccl/nccl_comm.h"

namespace terse::nccl {

namespace {

constexpr auto poll_pause = std::chrono::microseconds(50);
constexpr auto finalize_timeout = std::chrono::seconds(30), drain_timeout = std::chrono::seconds(5);
constexpr auto abort_timeout = std::chrono::seconds(30);  // then pending promises reject even if the abort still hangs

// All ranks finalize, then each destroys its communicator. False: another rank did not take part, and only an abort is
// left.
bool finalize(const Library& nccl, Comm comm, const std::vector<void*>& handles, Clock::time_point deadline,
              const Shutdown& shutdown) {
    for (void* handle : handles) nccl.CommDeregister(comm, handle);
    Result result = nccl.CommFinalize(comm);
    if (result != success && result != in_progress) return false;
    while (nccl.CommGetAsyncError(comm, &result) == success && result == in_progress) {
        if (shutdown.hurry || Clock::now() > deadline) return false;
        std::this_thread::sleep_for(poll_pause);
    }
    return result == success;
}

// True: all work on the stream has finished.
bool drain(const Driver& cuda, CUstream stream) {
    const auto deadline = Clock::now() + drain_timeout;
    CUevent end = nullptr;
    if (cuda.event_create(&end, event_disable_timing) != cuda_success) return false;
    CUresult result = cuda.event_record(end, stream);
    while (result == cuda_success && (result = cuda.event_query(end)) == cuda_not_ready) {
        if (Clock::now() > deadline) return false;
        result = cuda_success;
        std::this_thread::sleep_for(poll_pause);
    }
    cuda.event_destroy(end);
    return result == cuda_success;
}

}  // namespace

// Finalizing, destroying and aborting may wait for the device. A thread of its own does that and owns the communicator
// from now on.
void NcclComm::shut_down(bool in_order) {
    shutdown_ = std::make_shared<Shutdown>();
    const auto time_to_finalize = std::min<Clock::duration>(timeout_, finalize_timeout);
    shutdown_->deadline = Clock::now() + (in_order ? time_to_finalize : Clock::duration::zero()) + abort_timeout;
    std::shared_ptr<Split> split;
    if (splitting_) split = splitting_->split;
    {
        std::lock_guard lock(device_.mutex);
        ready_ = false;
    }
    std::vector<void*> handles;
    for (const Registration& each : registrations_)
        if (each.handle) handles.push_back(each.handle);
    device_.run_detached(
        "terse-nccl-end", [&nccl = device_.nccl, &cuda = device_.cuda, shutdown = shutdown_,
                           comm = std::exchange(handle_, nullptr), stream = std::exchange(stream_, nullptr), in_order,
                           split, handles, finalize_deadline = Clock::now() + time_to_finalize,
                           memory = std::move(allocations_), host_memory = std::move(host_allocations_)] {
            const bool finalized = comm && in_order && finalize(nccl, comm, handles, finalize_deadline, *shutdown);
            if (finalized) nccl.CommDestroy(comm);
            else if (comm) nccl.CommAbort(comm);
            if (split && split->made)
                nccl.CommAbort(split->made);  // after the abort above NCCL no longer writes it, and no child has
                                              // adopted it
            shutdown->drained = !stream || drain(cuda, stream);
            shutdown->quiet = true;
            if (shutdown->drained) {  // otherwise a kernel may still write there
                for (void* each : memory) release(nccl, cuda, each);
                for (void* each : host_memory) cuda.free_host(each);
                if (stream) cuda.stream_destroy(stream);
            }
            shutdown->over = true;
        });
}

bool NcclComm::poll_shutdown(bool closes) {
    const bool gives_up = Clock::now() > shutdown_->deadline;
    if (!settled_) {
        if (!shutdown_->quiet && !gives_up) return false;
        reject_all();
        return true;
    }
    if (!closes && !abandoned_) return false;
    if (!shutdown_->over && !gives_up) return false;
    device_.stuck |= !shutdown_->over;
    become_gone();
    return true;
}

// Every pending operation fails with the first error.
void NcclComm::reject_all() {
    const bool drained = shutdown_->quiet && shutdown_->drained;  // otherwise events and memory may still be in use
    std::lock_guard lock(device_.mutex);
    settled_ = true;
    const auto finish_all = [&](const std::vector<Call>& calls, bool memory_in_use = false) {
        for (const Call& call : calls) {
            if (drained) device_.return_event(call.ready);
            complete(call.operation.id, failure, {}, memory_in_use);
        }
    };
    if (connecting_) complete(connecting_->id, failure);
    connecting_.reset();
    if (splitting_) finish_all(splitting_->calls);
    splitting_.reset();
    for (const Work& work : in_flight_) {
        if (drained) device_.return_event(work.done);
        finish_all(work.group_call.calls, !drained);
    }
    in_flight_.clear();
    for (GroupCall& group_call : device_.queue)
        if (group_call.comm.get() == this) finish_all(group_call.calls);
    std::erase_if(device_.queue, [this](const GroupCall& group_call) { return group_call.comm.get() == this; });
    finish_all(coalescing);
    coalescing.clear();
    registrations_.clear();
}

void NcclComm::become_gone() {
    std::lock_guard lock(device_.mutex);
    gone_ = true;
    if (closing) complete(*closing, {});
    device_.changed.notify_all();
}

}  // namespace terse::nccl
