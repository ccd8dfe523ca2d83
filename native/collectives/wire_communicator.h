// A communicator over an engine: the threads that drive it.
//
// Collectives run in program order on one wire thread. Sends and receives run beside it, in program order per peer and direction,
// on threads that are started when first needed.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "communicator.h"

namespace terse::collectives {

class WireCommunicator : public Communicator {
public:
    // `completed` is called on wire threads whenever take() has something new.
    WireCommunicator(std::unique_ptr<Engine> engine, Clock::duration timeout, std::function<void()> completed);
    ~WireCommunicator() override;  // stop()

    const char* refusal(const Operation& operation) const override;
    void submit(Operation operation) override;
    void abort(const std::string& why) override;
    Cancelled cancel(uint64_t id) override;
    void close(uint64_t id) override;
    void stop() override;
    std::vector<Completion> take() override;
    const Counters& sent() const override { return counters_; }

private:
    struct Lane {
        std::deque<Operation> queue;
        uint32_t sequence = 0;
        uint64_t running = 0;  // id of the operation under way, or 0
        Wire* wire = nullptr;  // its thread's
        std::thread thread;
    };
    void run(Lane& lane, uint32_t slots);
    void connect(Wire& wire, const Operation& operation);
    void execute(Wire& wire, const Operation& operation);
    std::optional<Failure> attempt(Wire& wire, const Operation& operation);
    Failure fail(const Failure& failure);  // the first one counts and is returned
    void complete(uint64_t id, std::optional<Failure> failure);
    Lane& lane_of(const Operation& operation);

    std::unique_ptr<Engine> engine_;
    const Clock::duration timeout_;
    Counters counters_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> completed_;
    std::vector<Completion> completions_;
    Lane collective_;
    std::map<std::pair<int, bool>, Lane> direct_;  // (peer, receives)
    std::optional<Failure> failure_;
    bool judged_ = false;             // abort was called: all ranks know, or will know, whose fault it is
    Clock::time_point patient_until_;  // for that, after a failure
    std::optional<uint64_t> closing_;
    bool ending_ = false;
};

}  // namespace terse::collectives
