#include "wire_communicator.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>

#include "collectives.h"
#include "reduce.h"

namespace terse::collectives {
namespace {
// Longer than the rendezvous takes to say who is lost; JavaScript that is too busy to hear it must not hold the others up.
constexpr auto patience = std::chrono::seconds(3);
}  // namespace

WireCommunicator::WireCommunicator(std::unique_ptr<Engine> engine, Clock::duration timeout, std::function<void()> completed)
    : Communicator(engine->rank, engine->size), engine_(std::move(engine)), timeout_(timeout), completed_(std::move(completed)) {
    collective_.thread = std::thread([this] { run(collective_, 0); });
}

WireCommunicator::~WireCommunicator() { stop(); }

const char* WireCommunicator::refusal(const Operation& operation) const {
    if (operation.kind > Kind::scatter) return "this engine has no device";
    for (const auto* list : {&operation.parts, &operation.incoming})
        for (const BufferView& memory : *list)
            if (!memory.on_cpu) return "this engine moves memory of the CPU only";
    const bool reduces = operation.kind == Kind::all_reduce || operation.kind == Kind::reduce_scatter;
    return reduces && !find_reduce(operation.reduction, operation.parts[0].dtype) ? "this type cannot be reduced" : nullptr;
}

WireCommunicator::Lane& WireCommunicator::lane_of(const Operation& operation) {
    if (operation.kind != Kind::send && operation.kind != Kind::recv) return collective_;
    return direct_[{operation.peer, operation.kind == Kind::recv}];
}

void WireCommunicator::submit(Operation operation) {
    std::unique_lock lock(mutex_);
    if (closing_ || ending_) {
        lock.unlock();
        return complete(operation.id, Failure(Reason::argument, -1, "the group is closed"));
    }
    Lane& lane = lane_of(operation);
    lane.queue.push_back(std::move(operation));
    if (!lane.thread.joinable()) {  // collective_ has one
        try {
            lane.thread = std::thread([this, &lane] { run(lane, 1); });
        } catch (const std::system_error& error) {
            const Operation stuck = std::move(lane.queue.back());
            lane.queue.pop_back();
            lock.unlock();
            return complete(stuck.id, fail(Failure(Reason::aborted, -1, std::string(name_of(stuck.kind)) + " failed on rank " + std::to_string(rank) + ": no thread can be started (" + error.what() + ")")));
        }
    }
    changed_.notify_all();
}

// A send begins when its thread takes it up, which tells the other side; a receive when that news arrives. A collective belongs to
// all ranks from the moment that it is called.
Cancelled WireCommunicator::cancel(uint64_t id) {
    std::lock_guard lock(mutex_);
    const auto here = [&](Lane& lane, bool owner) -> std::optional<Cancelled> {
        if (lane.running == id) return !owner && lane.wire->withdraw() ? Cancelled::withdrawn : Cancelled::bound;
        const auto queued = std::ranges::find(lane.queue, id, &Operation::id);
        if (queued == lane.queue.end()) return {};
        if (owner) return Cancelled::bound;
        lane.queue.erase(queued);
        completions_.push_back({id, Failure(Reason::withdrawn, -1, "withdrawn"), {}});
        if (completed_) completed_();
        return Cancelled::withdrawn;
    };
    if (const auto found = here(collective_, true)) return *found;
    for (auto& [peer, lane] : direct_)
        if (const auto found = here(lane, false)) return *found;
    return Cancelled::finished;
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
        judged_ = true;
    }
    fail(Failure(Reason::aborted, -1, why));
}

Failure WireCommunicator::fail(const Failure& failure) {
    std::optional<Failure> first;
    {
        std::lock_guard lock(mutex_);
        if (!failure_) patient_until_ = Clock::now() + patience;
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
    if (collective_.thread.joinable()) collective_.thread.join();
}

void WireCommunicator::connect(Wire& wire, const Operation& operation) {
    const bool together = engine_->connect(wire.deadline);
    wire.listen();
    if (!together) return;
    barrier(wire, operation);
    engine_->established();
    counters_.clear();  // that was not the caller's
}

void WireCommunicator::execute(Wire& wire, const Operation& operation) {
    wire.deadline = Clock::now() + timeout_;
    if (operation.kind != Kind::connect) engine_->before(operation.kind == Kind::send || operation.kind == Kind::recv ? 0 : operation.sequence);
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
        case Kind::enroll:
        case Kind::disenroll:
        case Kind::split: return;  // refused
    }
}

std::optional<Failure> WireCommunicator::attempt(Wire& wire, const Operation& operation) {
    const auto failed = [&](Reason reason, int peer, const char* cause) {
        const std::string number = operation.sequence ? " number " + std::to_string(operation.sequence) : "";
        return fail(Failure(reason, peer, std::string(name_of(operation.kind)) + number + " failed on rank " + std::to_string(rank) + ": " + cause));
    };
    try {
        execute(wire, operation);
        return {};
    } catch (const Failure& cause) {
        if (cause.reason == Reason::withdrawn) return cause;
        return failed(cause.reason, cause.rank, cause.what());
    } catch (const std::exception& cause) {
        return failed(Reason::aborted, -1, cause.what());  // of this rank, which has no memory left
    }
}

// Works until the group is closed or left. The collective lane also owns the engine: it breaks the connections after an error, so
// that the other ranks notice, and gives everything back at the end. When a connection broke, it first waits until somebody has said
// which one it was: the others would take the end of theirs for the cause.
void WireCommunicator::run(Lane& lane, uint32_t slots) {
    const bool owner = &lane == &collective_;
    pthread_setname_np(pthread_self(), owner ? "terse-wire" : "terse-direct");
    {
        Wire wire(*engine_, counters_, slots);
        bool connected = true;
        std::unique_lock lock(mutex_);
        lane.wire = &wire;
        for (;;) {
            const bool failed = owner && connected && failure_;
            const bool broken = failed && (judged_ || failure_->reason != Reason::transport || Clock::now() >= patient_until_);
            if (lane.queue.empty() && !broken && !closing_ && !ending_) {
                if (failed) changed_.wait_until(lock, patient_until_);
                else changed_.wait(lock);
                continue;
            }
            if (!lane.queue.empty()) {
                Operation operation = std::move(lane.queue.front());
                lane.queue.pop_front();
                if (operation.kind != Kind::connect) operation.sequence = ++lane.sequence;
                std::optional<Failure> failure = failure_;
                if (!failure) {
                    lane.running = operation.id;
                    wire.begin(operation.kind == Kind::recv);
                    lock.unlock();
                    failure = attempt(wire, operation);
                    lock.lock();
                    lane.running = 0;
                    if (failure && failure->reason == Reason::withdrawn) lane.sequence--;  // the next one takes its place
                }
                const bool heard = operation.kind == Kind::all_to_all && !failure;
                completions_.push_back({operation.id, std::move(failure), heard ? wire.notes : std::vector<uint8_t>{}});
                if (completed_) completed_();
            } else if (broken) {
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
    for (auto& [peer, other] : direct_)
        if (other.thread.joinable()) other.thread.join();
    engine_->release();
    if (closing_) complete(*closing_, {});
}

}  // namespace terse::collectives
