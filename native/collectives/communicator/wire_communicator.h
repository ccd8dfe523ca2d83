// A communicator that runs the algorithms of this folder over an engine.
//
// Collectives run in program order on one wire thread. Sends and receives run beside it, in program order for each peer
// and direction, on threads that start when they are first needed.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "communicator/communicator.h"
#include "wire/wire.h"

namespace terse::collectives {

class WireCommunicator : public Communicator {
public:
    // `completed` is called on a wire thread whenever take() has something new.
    WireCommunicator(std::unique_ptr<Engine> engine, Clock::duration timeout, std::function<void()> completed);
    ~WireCommunicator() override;  // stop()

    const char* refusal(const Operation& operation) const override;
    void submit(Operation operation) override;
    void abort(const std::string& why) override;
    CancelOutcome cancel(uint64_t id) override;
    void close(uint64_t id) override;
    void stop() override;
    std::vector<Completion> take() override;
    const Counters& sent() const override { return counters_; }

private:
    struct Queue {  // and the thread that runs its operations
        std::deque<Operation> operations;
        uint32_t sequence = 0;
        uint64_t running = 0;  // id of the running operation, or 0
        Wire* wire = nullptr;  // its thread's
        std::thread thread;
    };
    void run(Queue& queue, uint32_t channel);
    void connect(Wire& wire, const Operation& operation);
    void execute(Wire& wire, const Operation& operation);
    std::optional<Failure> attempt(Wire& wire, const Operation& operation);
    Failure fail(const Failure& failure);  // keeps and returns the first failure
    void complete(uint64_t id, std::optional<Failure> failure);
    Queue& queue_of(const Operation& operation);

    std::unique_ptr<Engine> engine_;
    const Clock::duration timeout_;
    Counters counters_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> completed_;
    std::vector<Completion> completions_;
    Queue collectives_;
    std::map<std::pair<int, bool>, Queue> point_to_point_;  // (peer, receives)
    std::optional<Failure> failure_;
    bool blame_known_ = false;          // abort was called: every rank knows, or will be told, which rank failed
    Clock::time_point blame_deadline_;  // after a failure, how long to wait for that
    std::optional<uint64_t> closing_;
    bool ending_ = false;
};

}  // namespace terse::collectives
