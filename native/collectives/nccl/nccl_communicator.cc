#include "nccl_communicator.h"

#include <algorithm>

namespace terse::nccl {

using collectives::Cancelled;
using collectives::Kind;
using collectives::Operation;

namespace {

bool is_direct(const Operation& operation) { return operation.kind == Kind::send || operation.kind == Kind::recv; }

constexpr auto stop_patience = std::chrono::seconds(10);  // the process is ending, and a kernel may hang for ever

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<Issuer> issuer, int rank, int size, UniqueId id, std::unique_ptr<Configuration> configuration, Clock::duration timeout,
                                   Clock::duration connect_timeout, std::function<void()> completed)
    : Communicator(rank, size),
      issuer_(std::move(issuer)),
      member_(std::make_shared<Member>(*issuer_, rank, size, id, std::move(configuration), timeout, connect_timeout, std::move(completed))) {
    std::lock_guard lock(issuer_->mutex);
    issuer_->members.push_back(member_);
}

NcclCommunicator::~NcclCommunicator() { stop(); }

const char* NcclCommunicator::refusal(const Operation& operation) const {
    if (operation.device >= 0 && operation.device != issuer_->device) return "the memory is on another device than this rank's group";
    const auto elsewhere = [](const std::vector<BufferView>& list) { return std::ranges::any_of(list, &BufferView::on_cpu); };
    if (operation.kind == Kind::enroll && elsewhere(operation.parts)) return "only memory of the device can be registered";
    if (operation.kind == Kind::enroll && (!issuer_->nccl.CommRegister || !issuer_->nccl.CommDeregister)) return "this version of NCCL registers no memory";
    if (operation.kind != Kind::all_reduce && operation.kind != Kind::reduce_scatter) return nullptr;
    const DType dtype = operation.parts[0].dtype;
    if (dtype == DType::i16) return "NCCL adds no integers of 16 bits; widen them to 32";
    if (dtype == DType::boolean) return "this type cannot be reduced";
    if (operation.packed && (dtype != DType::u8 || operation.reduction != collectives::Reduction::sum)) return "only sums of u8 can be packed";
    if (operation.packed && operation.device >= 0 && reinterpret_cast<uintptr_t>(operation.parts[0].data) % 8) return "packed fields begin at a multiple of 8 bytes";
    return nullptr;
}

void NcclCommunicator::submit(Operation operation) {
    Call call{std::move(operation)};
    std::optional<Failure> marking;
    try {
        if (call.operation.device >= 0) call.ready = issuer_->mark(reinterpret_cast<CUstream>(call.operation.stream));
    } catch (const Failure& failure) {
        marking = failure;
    }
    std::lock_guard lock(issuer_->mutex);
    const uint64_t id = call.operation.id;
    if (marking) member_->fail(*marking);
    if (member_->closing) return member_->complete(id, Failure(Reason::argument, -1, "the group is closed"));
    if (member_->failure) return member_->complete(id, member_->failure);
    const bool direct = is_direct(call.operation);
    if (collectives::is_counted(call.operation.kind)) {
        const auto lane = direct ? std::pair(call.operation.peer, call.operation.kind) : std::pair(-1, Kind::connect);
        call.operation.sequence = ++member_->sequences[lane];
    }
    if (direct) return member_->forming.push_back(std::move(call));
    member_->flush(member_);
    issuer_->queue.push_back({member_, {}, nullptr});
    issuer_->queue.back().calls.push_back(std::move(call));
    issuer_->changed.notify_all();
}

std::shared_ptr<Split> NcclCommunicator::split(uint64_t id) {
    std::lock_guard lock(issuer_->mutex);
    auto split = std::make_shared<Split>();
    Call call;
    call.operation.kind = Kind::split;
    call.operation.id = id;
    if (member_->closing || member_->failure) {
        member_->complete(id, member_->failure ? member_->failure : Failure(Reason::argument, -1, "the group is closed"));
        return split;
    }
    split->deadline = member_->patience();
    member_->flush(member_);
    issuer_->queue.push_back({member_, {call}, split});
    issuer_->changed.notify_all();
    return split;
}

void NcclCommunicator::join(const std::shared_ptr<Split>& split, int color, int key, const NcclCommunicator* child) {
    std::lock_guard lock(issuer_->mutex);
    split->color = color;
    split->key = key;
    if (child) split->child = child->member_;
    split->settled = true;
    issuer_->changed.notify_all();
}

void NcclCommunicator::flush() {
    std::lock_guard lock(issuer_->mutex);
    member_->flush(member_);
}

void NcclCommunicator::abort(const std::string& why) {
    std::lock_guard lock(issuer_->mutex);
    member_->fail(Failure(Reason::aborted, -1, why));
}

// What NCCL has is for good; before that nobody has heard of it. A collective is promised to all ranks by its place in the order.
Cancelled NcclCommunicator::cancel(uint64_t id) {
    std::lock_guard lock(issuer_->mutex);
    if (member_->bound.contains(id)) return Cancelled::bound;
    const auto withdraw = [&](std::vector<Call>& calls) -> std::optional<Cancelled> {
        const auto call = std::ranges::find(calls, id, [](const Call& each) { return each.operation.id; });
        if (call == calls.end()) return {};
        if (!is_direct(call->operation)) return Cancelled::bound;
        member_->sequences[{call->operation.peer, call->operation.kind}]--;
        issuer_->give_event(call->ready);
        calls.erase(call);
        member_->complete(id, Failure(Reason::withdrawn, -1, "withdrawn"));
        return Cancelled::withdrawn;
    };
    if (const auto found = withdraw(member_->forming)) return *found;
    for (Request& request : issuer_->queue) {
        if (request.member != member_) continue;
        const auto found = withdraw(request.calls);
        if (!found) continue;
        if (request.calls.empty()) std::erase_if(issuer_->queue, [](const Request& each) { return each.calls.empty(); });
        return *found;
    }
    return Cancelled::finished;
}

void NcclCommunicator::close(uint64_t id) {
    std::lock_guard lock(issuer_->mutex);
    if (member_->closing || member_->is_gone()) return member_->complete(id, {});
    member_->flush(member_);
    member_->closing = id;
    issuer_->changed.notify_all();
}

void NcclCommunicator::stop() {
    std::unique_lock lock(issuer_->mutex);
    member_->leave();
    issuer_->changed.wait_for(lock, stop_patience, [&] { return member_->is_gone(); });
}

std::vector<collectives::Completion> NcclCommunicator::take() {
    std::lock_guard lock(issuer_->mutex);
    return std::exchange(member_->completions, {});
}

}  // namespace terse::nccl
