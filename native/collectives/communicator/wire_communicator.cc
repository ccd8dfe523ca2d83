#include "communicator/wire_communicator.h"

#include <pthread.h>

#include <algorithm>
#include <stdexcept>

#include "algorithms/algorithms.h"
#include "algorithms/reduce.h"
#include "terse/start_thread.h"

namespace terse::collectives {
namespace {
// Longer than the rendezvous needs to say which rank is lost. A rank whose JavaScript is too busy to hear it must not
// delay the others.
constexpr auto blame_timeout = std::chrono::seconds(3);
}  // namespace

WireCommunicator::WireCommunicator(std::unique_ptr<Engine> engine, Clock::duration timeout,
                                   std::function<void()> completed)
    : Communicator(engine->rank, engine->size),
      engine_(std::move(engine)),
      timeout_(timeout),
      completed_(std::move(completed)) {
    collectives_.thread = start_thread([this] { run(collectives_, 0); });
}

WireCommunicator::~WireCommunicator() { stop(); }

const char* WireCommunicator::refusal(const Operation& operation) const {
    if (operation.kind > Kind::scatter) return "this engine does not use a device";
    for (const auto* list : {&operation.parts, &operation.incoming})
        for (const BufferView& memory : *list)
            if (!memory.on_cpu) return "this engine moves only CPU memory";
    const bool reduces = operation.kind == Kind::all_reduce || operation.kind == Kind::reduce_scatter;
    return reduces && !find_reduce(operation.reduction, operation.parts[0].dtype) ? "this type cannot be reduced"
                                                                                  : nullptr;
}

WireCommunicator::Queue& WireCommunicator::queue_of(const Operation& operation) {
    if (!is_point_to_point(operation.kind)) return collectives_;
    return point_to_point_[{operation.peer, operation.kind == Kind::recv}];
}

void WireCommunicator::submit(Operation operation) {
    std::unique_lock lock(mutex_);
    if (closing_ || ending_) {
        lock.unlock();
        return complete(operation.id, Failure(Reason::argument, -1, "the group is closed"));
    }
    Queue& queue = queue_of(operation);
    queue.operations.push_back(std::move(operation));
    if (!queue.thread.joinable()) {  // the one of collectives_ runs since the start
        try {
            queue.thread = start_thread([this, &queue] { run(queue, 1); });
        } catch (const std::runtime_error& error) {
            const Operation refused = std::move(queue.operations.back());
            queue.operations.pop_back();
            lock.unlock();
            return complete(refused.id, fail(Failure(Reason::aborted, -1,
                                                     std::string(name_of(refused.kind)) + " failed on rank " +
                                                         std::to_string(rank) + ": " + error.what())));
        }
    }
    changed_.notify_all();
}

// A send starts when its thread takes it from the queue and sends the header; a receive starts when that header
// arrives. A collective cannot be cancelled, because the other ranks count on it from the moment of the call.
CancelOutcome WireCommunicator::cancel(uint64_t id) {
    std::lock_guard lock(mutex_);
    const auto cancel_in = [&](Queue& queue, bool collective) -> std::optional<CancelOutcome> {
        if (queue.running == id)
            return !collective && queue.wire->cancel() ? CancelOutcome::cancelled : CancelOutcome::started;
        const auto queued = std::ranges::find(queue.operations, id, &Operation::id);
        if (queued == queue.operations.end()) return {};
        if (collective) return CancelOutcome::started;
        queue.operations.erase(queued);
        completions_.push_back({id, Failure(Reason::cancelled, -1, "cancelled"), {}});
        if (completed_) completed_();
        return CancelOutcome::cancelled;
    };
    if (const auto found = cancel_in(collectives_, true)) return *found;
    for (auto& [peer, queue] : point_to_point_)
        if (const auto found = cancel_in(queue, false)) return *found;
    return CancelOutcome::finished;
}

void WireCommunicator::close(uint64_t id) {
    std::unique_lock lock(mutex_);
    if (closing_ || ending_) {
        lock.unlock();
        return complete(id, {});
    }
    closing_ = id;
    changed_.notify_all();
}

void WireCommunicator::abort(const std::string& why) {
    {
        std::lock_guard lock(mutex_);
        blame_known_ = true;
    }
    fail(Failure(Reason::aborted, -1, why));
}

Failure WireCommunicator::fail(const Failure& failure) {
    std::optional<Failure> first;
    {
        std::lock_guard lock(mutex_);
        if (!failure_) blame_deadline_ = Clock::now() + blame_timeout;
        if (!failure_) failure_ = failure;
        first = failure_;
        changed_.notify_all();
    }
    engine_->abort();
    return *first;
}

void WireCommunicator::complete(uint64_t id, std::optional<Failure> failure) {
    std::lock_guard lock(mutex_);
    completions_.push_back({id, std::move(failure), {}});
    if (completed_) completed_();
}

std::vector<Completion> WireCommunicator::take() {
    std::lock_guard lock(mutex_);
    return std::exchange(completions_, {});
}

void WireCommunicator::stop() {
    {
        std::lock_guard lock(mutex_);
        completed_ = nullptr;
        ending_ = true;
        if (!failure_) failure_ = Failure(Reason::aborted, -1, "the group was left");
        changed_.notify_all();
    }
    engine_->abort();
    if (collectives_.thread.joinable()) collectives_.thread.join();
}

void WireCommunicator::connect(Wire& wire, const Operation& operation) {
    const bool needs_barrier = engine_->connect(wire.deadline);
    wire.post_header_receives();
    if (!needs_barrier) return;
    barrier(wire, operation);
    engine_->established();
    counters_.clear();  // the caller did not send the barrier
}

void WireCommunicator::execute(Wire& wire, const Operation& operation) {
    wire.deadline = Clock::now() + timeout_;
    if (operation.kind != Kind::connect) engine_->before(is_point_to_point(operation.kind) ? 0 : operation.sequence);
    switch (operation.kind) {
        case Kind::connect: return connect(wire, operation);
        case Kind::all_reduce: return all_reduce(wire, operation);
        case Kind::reduce_scatter: return reduce_scatter(wire, operation);
        case Kind::all_gather: return all_gather(wire, operation);
        case Kind::all_to_all: return all_to_all(wire, operation);
        case Kind::broadcast: return broadcast(wire, operation);
        case Kind::gather: return gather(wire, operation);
        case Kind::scatter: return scatter(wire, operation);
        case Kind::send: return send(wire, operation);
        case Kind::recv: return recv(wire, operation);
        case Kind::barrier: return barrier(wire, operation);
        case Kind::copy:
        case Kind::register_buffer:
        case Kind::deregister_buffer:
        case Kind::split: return;  // refused
    }
}

std::optional<Failure> WireCommunicator::attempt(Wire& wire, const Operation& operation) {
    const auto failed = [&](Reason reason, int peer, const char* cause) {
        const std::string number = operation.sequence ? " number " + std::to_string(operation.sequence) : "";
        return fail(Failure(
            reason, peer,
            std::string(name_of(operation.kind)) + number + " failed on rank " + std::to_string(rank) + ": " + cause));
    };
    try {
        execute(wire, operation);
        return {};
    } catch (const Failure& cause) {
        if (cause.reason == Reason::cancelled) return cause;
        return failed(cause.reason, cause.rank, cause.what());
    } catch (const std::exception& cause) {
        return failed(Reason::aborted, -1, cause.what());  // this rank has no memory left
    }
}

// Runs until the group is closed or stopped. The collectives' thread also owns the engine: after a failure it closes
// the connections, so that the other ranks notice, and at the end it releases the engine. If a connection broke, it
// first waits until all ranks have been told which rank failed. Without that wait the others would see their
// connections to this rank end and blame this rank.
void WireCommunicator::run(Queue& queue, uint32_t channel) {
    const bool owner = &queue == &collectives_;
    pthread_setname_np(pthread_self(), owner ? "terse-wire" : "terse-p2p");
    {
        Wire wire(*engine_, counters_, channel);
        bool connected = true;
        std::unique_lock lock(mutex_);
        queue.wire = &wire;
        for (;;) {
            const bool failed = owner && connected && failure_;
            const bool disconnects = failed && (blame_known_ || failure_->reason != Reason::transport ||
                                                Clock::now() >= blame_deadline_);
            if (queue.operations.empty() && !disconnects && !closing_ && !ending_) {
                if (failed) changed_.wait_until(lock, blame_deadline_);
                else changed_.wait(lock);
                continue;
            }
            if (!queue.operations.empty()) {
                Operation operation = std::move(queue.operations.front());
                queue.operations.pop_front();
                if (operation.kind != Kind::connect) operation.sequence = ++queue.sequence;
                std::optional<Failure> failure = failure_;
                if (!failure) {
                    queue.running = operation.id;
                    wire.begin(operation.kind == Kind::recv);
                    lock.unlock();
                    failure = attempt(wire, operation);
                    lock.lock();
                    queue.running = 0;
                    if (failure && failure->reason == Reason::cancelled)
                        queue.sequence--;  // the next receive gets its number
                }
                const bool has_notes = operation.kind == Kind::all_to_all && !failure;
                completions_.push_back(
                    {operation.id, std::move(failure), has_notes ? wire.notes : std::vector<uint8_t>{}});
                if (completed_) completed_();
            } else if (disconnects) {
                connected = false;
                lock.unlock();
                engine_->disconnect();
                lock.lock();
            } else {
                break;
            }
        }
    }
    if (!owner) return;
    for (auto& [peer, other] : point_to_point_)
        if (other.thread.joinable()) other.thread.join();
    engine_->release();
    if (closing_) complete(*closing_, {});
}

}  // namespace terse::collectives
