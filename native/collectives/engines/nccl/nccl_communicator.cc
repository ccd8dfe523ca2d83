#include "engines/nccl/nccl_communicator.h"

#include <algorithm>

namespace terse::nccl {

using collectives::CancelOutcome;
using collectives::Kind;
using collectives::Operation;

namespace {

constexpr auto stop_timeout = std::chrono::seconds(10);  // the process ends, even if a kernel hangs

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<Device> device, int rank, int size, UniqueId id,
                                   std::unique_ptr<Configuration> configuration, Clock::duration timeout,
                                   Clock::duration connect_timeout, std::function<void()> completed)
    : Communicator(rank, size),
      device_(std::move(device)),
      comm_(std::make_shared<NcclComm>(*device_, rank, size, id, std::move(configuration), timeout, connect_timeout,
                                       std::move(completed))) {
    std::lock_guard lock(device_->mutex);
    device_->comms.push_back(comm_);
}

NcclCommunicator::~NcclCommunicator() { stop(); }

const char* NcclCommunicator::refusal(const Operation& operation) const {
    if (operation.device >= 0 && operation.device != device_->ordinal)
        return "the memory is on another device than this rank's group";
    const auto any_on_cpu = [](const std::vector<BufferView>& list) {
        return std::ranges::any_of(list, &BufferView::on_cpu);
    };
    if (operation.kind == Kind::register_buffer && any_on_cpu(operation.parts))
        return "only memory of the device can be registered";
    if (operation.kind == Kind::register_buffer && (!device_->nccl.CommRegister || !device_->nccl.CommDeregister))
        return "this version of NCCL cannot register memory";
    if (operation.kind != Kind::all_reduce && operation.kind != Kind::reduce_scatter) return nullptr;
    const DType dtype = operation.parts[0].dtype;
    if (dtype == DType::i16) return "NCCL cannot reduce i16; convert them to i32";
    if (dtype == DType::boolean) return "this type cannot be reduced";
    if (operation.packed && (dtype != DType::u8 || operation.reduction != collectives::Reduction::sum))
        return "only sums of u8 can be packed";
    if (operation.packed && operation.device >= 0 && reinterpret_cast<uintptr_t>(operation.parts[0].data) % 8)
        return "packed fields must begin at an address that is a multiple of 8 bytes";
    return nullptr;
}

void NcclCommunicator::submit(Operation operation) {
    Call call{std::move(operation)};
    std::optional<Failure> record_failure;
    try {
        if (call.operation.device >= 0)
            call.ready = device_->record_event(reinterpret_cast<CUstream>(call.operation.stream));
    } catch (const Failure& failure) {
        record_failure = failure;
    }
    std::lock_guard lock(device_->mutex);
    const uint64_t id = call.operation.id;
    if (record_failure) comm_->fail(*record_failure);
    if (comm_->closing) return comm_->complete(id, Failure(Reason::argument, -1, "the group is closed"));
    if (comm_->failure) return comm_->complete(id, comm_->failure);
    const bool point_to_point = collectives::is_point_to_point(call.operation.kind);
    if (collectives::is_counted(call.operation.kind)) {
        const auto order = point_to_point ? std::pair(call.operation.peer, call.operation.kind)
                                          : std::pair(-1, Kind::connect);
        call.operation.sequence = ++comm_->sequences[order];
    }
    if (point_to_point) return comm_->coalescing.push_back(std::move(call));
    comm_->flush(comm_);
    device_->queue.push_back({comm_, {}, nullptr});
    device_->queue.back().calls.push_back(std::move(call));
    device_->changed.notify_all();
}

std::shared_ptr<Split> NcclCommunicator::split(uint64_t id) {
    std::lock_guard lock(device_->mutex);
    auto split = std::make_shared<Split>();
    Call call;
    call.operation.kind = Kind::split;
    call.operation.id = id;
    if (comm_->closing || comm_->failure) {
        comm_->complete(id, comm_->failure ? comm_->failure : Failure(Reason::argument, -1, "the group is closed"));
        return split;
    }
    split->deadline = comm_->operation_deadline();
    comm_->flush(comm_);
    device_->queue.push_back({comm_, {call}, split});
    device_->changed.notify_all();
    return split;
}

void NcclCommunicator::join(const std::shared_ptr<Split>& split, int color, int key, const NcclCommunicator* child) {
    std::lock_guard lock(device_->mutex);
    split->color = color;
    split->key = key;
    if (child) split->child = child->comm_;
    split->settled = true;
    device_->changed.notify_all();
}

void NcclCommunicator::flush() {
    std::lock_guard lock(device_->mutex);
    comm_->flush(comm_);
}

void NcclCommunicator::abort(const std::string& why) {
    std::lock_guard lock(device_->mutex);
    comm_->fail(Failure(Reason::aborted, -1, why));
}

// An operation that NCCL has taken cannot be taken back. A collective never can: the other ranks count on its place in
// the order.
CancelOutcome NcclCommunicator::cancel(uint64_t id) {
    std::lock_guard lock(device_->mutex);
    if (comm_->started.contains(id)) return CancelOutcome::started;
    const auto cancel_in = [&](std::vector<Call>& calls) -> std::optional<CancelOutcome> {
        const auto call = std::ranges::find(calls, id, [](const Call& each) { return each.operation.id; });
        if (call == calls.end()) return {};
        if (!collectives::is_point_to_point(call->operation.kind)) return CancelOutcome::started;
        comm_->sequences[{call->operation.peer, call->operation.kind}]--;
        device_->return_event(call->ready);
        calls.erase(call);
        comm_->complete(id, Failure(Reason::cancelled, -1, "cancelled"));
        return CancelOutcome::cancelled;
    };
    if (const auto found = cancel_in(comm_->coalescing)) return *found;
    for (GroupCall& group_call : device_->queue) {
        if (group_call.comm != comm_) continue;
        const auto found = cancel_in(group_call.calls);
        if (!found) continue;
        if (group_call.calls.empty())
            std::erase_if(device_->queue, [](const GroupCall& each) { return each.calls.empty(); });
        return *found;
    }
    return CancelOutcome::finished;
}

void NcclCommunicator::close(uint64_t id) {
    std::lock_guard lock(device_->mutex);
    if (comm_->closing || comm_->is_gone()) return comm_->complete(id, {});
    comm_->flush(comm_);
    comm_->closing = id;
    device_->changed.notify_all();
}

void NcclCommunicator::stop() {
    std::unique_lock lock(device_->mutex);
    comm_->abandon();
    device_->changed.wait_for(lock, stop_timeout, [&] { return comm_->is_gone(); });
}

std::vector<collectives::Completion> NcclCommunicator::take() {
    std::lock_guard lock(device_->mutex);
    return std::exchange(comm_->completions, {});
}

}  // namespace terse::nccl
