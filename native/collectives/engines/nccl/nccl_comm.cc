#include "engines/nccl/nccl_comm.h"

#include <algorithm>

#include "engines/nccl/plan.h"
#include "engines/nccl/volume.h"

namespace terse::nccl {

using collectives::Kind;
using collectives::Operation;

namespace {

bool uses_cpu_memory(const GroupCall& group_call) {
    return std::ranges::any_of(group_call.calls, [](const Call& call) {
        const auto on_cpu = [](const std::vector<BufferView>& list) {
            return std::ranges::any_of(list, &BufferView::on_cpu);
        };
        return on_cpu(call.operation.parts) || on_cpu(call.operation.incoming);
    });
}

std::string seconds_of(Clock::duration duration) {
    std::string text = std::to_string(std::chrono::duration<double>(duration).count());
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " s";
}

}  // namespace

NcclComm::NcclComm(Device& device, int rank, int size, UniqueId id, std::unique_ptr<Configuration> configuration,
                   Clock::duration timeout, Clock::duration connect_timeout, std::function<void()> completed)
    : rank(rank),
      size(size),
      device_(device),
      id_(id),
      configuration_(std::move(configuration)),
      timeout_(timeout),
      connect_timeout_(connect_timeout),
      completed_(std::move(completed)) {}

// --- Any thread that holds the mutex ---

void NcclComm::complete(uint64_t id, std::optional<Failure> failure, std::vector<uint8_t> notes, bool memory_in_use) {
    started.erase(id);
    completions.push_back({id, std::move(failure), std::move(notes), memory_in_use});
    if (completed_) completed_();
}

void NcclComm::fail(const Failure& first) {
    if (!failure) failure = first;
    device_.changed.notify_all();
}

void NcclComm::flush(const std::shared_ptr<NcclComm>& self) {
    if (coalescing.empty()) return;
    device_.queue.push_back({self, std::move(coalescing), nullptr});
    coalescing.clear();
    device_.changed.notify_all();
}

void NcclComm::abandon() {
    completed_ = nullptr;
    abandoned_ = true;
    fail(Failure(Reason::aborted, -1, "the group was left"));
}

// Results for CPU memory are copied out of scratch only after the operation. Until then no other operation may use the
// scratch.
bool NcclComm::may_start(const GroupCall& group_call) const {
    const Kind kind = group_call.calls[0].operation.kind;
    if (kind == Kind::connect) return !failure;
    if (!ready_ || failure) return false;
    // These calls may wait for all kernels on the device, and ncclCommSplit also wants no outstanding operation.
    if (kind == Kind::split) return group_call.split->settled && device_.is_idle();
    if (kind == Kind::register_buffer || kind == Kind::deregister_buffer) return device_.is_idle();
    if (kind == Kind::all_to_all && notes_.empty()) return false;
    if (in_flight_.empty()) return true;
    return !uses_cpu_memory(group_call) && !uses_cpu_memory(in_flight_.back().group_call);
}

void NcclComm::mark_started(const GroupCall& group_call) {
    for (const Call& call : group_call.calls) started.insert(call.operation.id);
}

// --- The device's thread ---

std::string NcclComm::describe(Result result, const char* what) const {
    const char* known = device_.nccl.GetErrorString(result);
    const char* last = device_.nccl.GetLastError(handle_);
    std::string text = std::string(what) + ": " + (known ? known : "NCCL error " + std::to_string(result));
    if (last && *last) text += std::string(" (") + last + ")";
    return text;
}

void NcclComm::accept(Result result, const char* what) {
    if (result == success || result == in_progress) return;
    const bool usage = result == invalid_argument || result == invalid_usage;
    const bool others = result == remote_error || result == system_error;
    throw Failure(usage ? Reason::mismatch : others ? Reason::transport : Reason::device, -1, describe(result, what));
}

Result NcclComm::state() {
    Result asynchronous = success;
    const Result result = device_.nccl.CommGetAsyncError(handle_, &asynchronous);
    return result == success ? asynchronous : result;
}

void NcclComm::fail_operation(const Operation& operation, Reason reason, const std::string& cause) {
    const std::string number = operation.sequence ? " number " + std::to_string(operation.sequence) : "";
    std::lock_guard lock(device_.mutex);
    fail(Failure(reason, -1,
                 name_of(operation.kind) + number + " failed on rank " + std::to_string(rank) + ": " + cause));
}

void NcclComm::connect(const Operation& operation) {
    connecting_ = operation;
    connect_deadline_ = Clock::now() + connect_timeout_;
    device_.check(device_.cuda.stream_create(&stream_, stream_non_blocking), "cuStreamCreate");
    accept(device_.nccl.CommInitRankConfig(&handle_, size, id_, rank, configuration_->get()), "ncclCommInitRankConfig");
}

bool NcclComm::poll_connection() {
    const Result result = state();
    accept(result, "ncclCommInitRankConfig");
    if (result == in_progress) {
        if (Clock::now() > connect_deadline_)
            throw Failure(
                Reason::timeout, -1,
                "NCCL has not connected all " + std::to_string(size) + " ranks after " + seconds_of(connect_timeout_) +
                    "; NCCL_DEBUG=INFO shows what it tries, NCCL_SOCKET_IFNAME chooses the network interface");
        return false;
    }
    int device = -1;
    accept(device_.nccl.CommCuDevice(handle_, &device), "ncclCommCuDevice");
    if (device != device_.ordinal)
        throw Failure(
            Reason::device, -1,
            "NCCL took cuda:" + std::to_string(device) + " instead of cuda:" + std::to_string(device_.ordinal));
    allocate_notes();
    std::lock_guard lock(device_.mutex);
    ready_ = true;
    complete(connecting_->id, {});
    connecting_.reset();
    return true;
}

void NcclComm::split(const GroupCall& group_call) {
    splitting_ = group_call;
    connect_deadline_ = Clock::now() + connect_timeout_;
    Split& split = *group_call.split;
    accept(device_.nccl.CommSplit(handle_, split.color, split.key, &split.made,
                                  split.child ? split.child->configuration_->get() : nullptr),
           "ncclCommSplit");
}

// ncclCommSplit reports its progress and its errors on the parent communicator.
bool NcclComm::poll_split() {
    const Result result = state();
    accept(result, "ncclCommSplit");
    if (result == in_progress) {
        if (Clock::now() > connect_deadline_)
            throw Failure(Reason::timeout, -1, "NCCL has not split the group after " + seconds_of(connect_timeout_));
        return false;
    }
    const auto split = splitting_->split;
    if (split->child) {
        if (!split->made) throw Failure(Reason::device, -1, "ncclCommSplit made no communicator");
        split->child->adopt(std::exchange(split->made, nullptr));
    }
    std::lock_guard lock(device_.mutex);
    for (const Call& call : splitting_->calls) complete(call.operation.id, {});
    splitting_.reset();
    return true;
}

// Called on the child of a split. A child that has shut down already aborts the new communicator.
void NcclComm::adopt(Comm made) {
    handle_ = made;
    if (shutdown_) {
        device_.run_detached("terse-nccl-end", [&nccl = device_.nccl, made] { nccl.CommAbort(made); });
        return;
    }
    std::optional<Failure> failed;
    try {
        device_.check(device_.cuda.stream_create(&stream_, stream_non_blocking), "cuStreamCreate");
        allocate_notes();
    } catch (const Failure& cause) {
        failed = cause;
    }
    std::lock_guard lock(device_.mutex);
    if (failed) fail(*failed);
    ready_ = !failed;
}

void NcclComm::start(GroupCall group_call) {
    const Operation operation = group_call.calls[0].operation;
    try {
        if (operation.kind == Kind::connect) return connect(operation);
        if (operation.kind == Kind::split) return split(group_call);
        used_ = 0;  // operations run in order on the stream, so the next one may use the same scratch
        Work& work = in_flight_.emplace_back();
        work.group_call = std::move(group_call);
        work.deadline = Clock::now() + timeout_;
        work.done = device_.take_event();
        Plan(*this, work).make();
        launch(work);
    } catch (const Failure& cause) {
        fail_operation(operation, cause.reason, cause.what());
    }
}

bool NcclComm::launch(Work& work) {
    while (!work.steps.empty()) {
        const Result result = launching_ ? state() : work.steps.front()();
        launching_ = result == in_progress;
        if (launching_) return false;
        accept(result, name_of(work.group_call.calls[0].operation.kind));
        work.steps.pop_front();
    }
    device_.check(device_.cuda.event_record(work.done, stream_), "cuEventRecord");
    for (const Call& call : work.group_call.calls) {
        const Volume volume = volume_of(call.operation, rank, size);
        counters.bytes += volume.bytes;
        counters.messages += volume.messages;
        counters.header_bytes += volume.header_bytes;
    }
    work.recorded = true;
    return true;
}

bool NcclComm::poll_work() {
    bool progress = false;
    Work& last = in_flight_.back();
    if (!last.recorded) progress |= launch(last);
    accept(state(), "NCCL");
    while (!in_flight_.empty() && in_flight_.front().recorded) {
        Work& work = in_flight_.front();
        const CUresult result = device_.cuda.event_query(work.done);
        if (result == cuda_not_ready) break;
        device_.check(result, "cuEventQuery");
        progress = true;
        if (!work.copies.empty()) {
            for (const CopyToCpu& copy : work.copies)
                device_.check(device_.cuda.copy_out(copy.to, copy.from, copy.bytes, stream_), "cuMemcpyDtoHAsync");
            work.copies.clear();
            device_.check(device_.cuda.event_record(work.done, stream_), "cuEventRecord");
            continue;
        }
        finish(work);
        in_flight_.pop_front();
        if (!in_flight_.empty())
            in_flight_.front().deadline = Clock::now() + timeout_;  // until now it waited for the one before it
    }
    if (!in_flight_.empty() && Clock::now() > in_flight_.front().deadline)
        throw Failure(Reason::timeout, -1,
                      "NCCL has not finished it after " + seconds_of(timeout_) +
                          "; check that every rank calls the same operations in the same order with the same sizes");
    return progress;
}

void NcclComm::finish(Work& work) {
    std::vector<uint8_t> notes;
    if (work.notes) {
        notes.assign(work.notes->received, work.notes->received + size);
        notes_.push_back(*work.notes);
    }
    for (const Call& call : work.group_call.calls) device_.return_event(call.ready);
    device_.return_event(work.done);
    std::lock_guard lock(device_.mutex);
    for (const Call& call : work.group_call.calls) complete(call.operation.id, {}, notes);
}

// A split that waits at the head of the queue holds up everything behind it, so it has a deadline like an operation.
void NcclComm::check_split_deadline(const GroupCall& group_call) {
    if (!group_call.split || group_call.split->settled || Clock::now() <= group_call.split->deadline) return;
    fail(Failure(Reason::timeout, -1,
                 "split failed on rank " + std::to_string(rank) + ": not all ranks have called it after " +
                     seconds_of(timeout_)));
}

bool NcclComm::advance() {
    bool failed, closes, hurry;
    {
        std::lock_guard lock(device_.mutex);
        if (!device_.queue.empty() && device_.queue.front().comm.get() == this)
            check_split_deadline(device_.queue.front());
        failed = failure.has_value();
        hurry = abandoned_;
        const bool queued = !coalescing.empty() ||
                            std::ranges::any_of(device_.queue, [this](const GroupCall& group_call) {
                                return group_call.comm.get() == this;
                            });
        closes = closing && !queued && in_flight_.empty() && !connecting_ && !splitting_;
    }
    if (gone_) return false;
    if (shutdown_) {
        if (hurry) shutdown_->hurry = true;
        return poll_shutdown(closes);
    }
    if (failed) {
        shut_down(false);
        return true;
    }
    const Operation* current = connecting_           ? &*connecting_
                               : splitting_          ? &splitting_->calls[0].operation
                               : !in_flight_.empty() ? &in_flight_.front().group_call.calls[0].operation
                                                     : nullptr;
    if (!current) {
        if (closes) shut_down(true);
        return closes;
    }
    const Operation operation = *current;
    try {
        return connecting_ ? poll_connection() : splitting_ ? poll_split() : poll_work();
    } catch (const Failure& cause) {
        fail_operation(operation, cause.reason, cause.what());
        return true;
    }
}

}  // namespace terse::nccl
