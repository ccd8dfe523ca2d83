// A rank's place in a group: an engine, the threads that drive it, and the state ready → failed → closed.
//
// Collectives run in program order on one wire thread. Sends and receives run beside it, in program order per peer and direction,
// on threads that are started when first needed. After the first error everything pending and later fails with that same error.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine.h"
#include "message.h"
#include "operation.h"

namespace terse::collectives {

struct Completion {
    uint64_t id;
    std::optional<Failure> failure;
    std::vector<uint8_t> notes;  // all-to-all: of every rank
};

// What became of an operation that is no longer wanted.
enum class Cancelled {
    finished,   // it is over, or never was
    withdrawn,  // as if never called; it completes with Reason::withdrawn
    bound,      // other ranks count on it: only abort ends it
};

class Communicator {
public:
    // `completed` is called on wire threads whenever take() has something new.
    Communicator(std::unique_ptr<Engine> engine, Clock::duration timeout, std::function<void()> completed);
    ~Communicator();  // stop()

    const int rank, size;

    void submit(Operation operation);
    void abort(const std::string& why) { fail(Failure(Reason::aborted, -1, why)); }
    Cancelled cancel(uint64_t id);
    void close(uint64_t id);  // completes as `id` when all before it are done and the connections are gone
    void stop();              // aborts and joins; `completed` is not called any more
    std::vector<Completion> take();
    const Counters& sent() const { return counters_; }

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
    std::optional<uint64_t> closing_;
    bool ending_ = false;
};

}  // namespace terse::collectives
