// A communicator of NCCL's, as the issuing thread drives it: connecting → ready → failed → gone.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "config.h"
#include "issuer.h"

namespace terse::nccl {

using collectives::Clock;
using collectives::Failure;
using collectives::Reason;

// CUDA work, or one group of NCCL's. The next step may begin when NCCL has taken this one: before that nothing may be put on
// the stream.
using Step = std::function<Result()>;

struct CopyOut {
    void* to;  // on the CPU
    CUdeviceptr from;
    size_t bytes;
};

// The notes of one all-to-all.
struct Notes {
    CUdeviceptr memory = 0;      // this rank's, then those of all
    uint8_t* arrived = nullptr;  // of all, on the CPU
};

// A request on its way: steps that NCCL has still to take, then an event.
struct Flight {
    Request request;
    std::deque<Step> steps;
    std::vector<CopyOut> copies;  // to begin when the event is there: before, a failure could still change the caller's memory
    std::optional<Notes> notes;
    CUevent done = nullptr;
    bool recorded = false;
    Clock::time_point deadline;
};

class Member {
public:
    Member(Issuer& issuer, int rank, int size, UniqueId id, std::unique_ptr<Configuration> configuration, Clock::duration timeout, Clock::duration connect_timeout,
           std::function<void()> completed);

    const int rank, size;
    collectives::Counters counters;

    // With the issuer's mutex, from any thread.
    void complete(uint64_t id, std::optional<Failure> failure, std::vector<uint8_t> notes = {});
    void fail(const Failure& failure);  // the first one counts
    void flush(const std::shared_ptr<Member>& self);  // sends and receives that were called become one request
    void leave();                       // nobody waits for it any more

    std::optional<Failure> failure;
    std::optional<uint64_t> closing;
    std::vector<Call> forming;         // sends and receives of this turn
    std::set<uint64_t> bound;          // operations that have begun
    std::vector<collectives::Completion> completions;
    std::map<std::pair<int, collectives::Kind>, uint32_t> sequences;

    // With the mutex, on the issuing thread.
    bool may_begin(const Request& request) const;
    bool is_launching() const { return !flights_.empty() && !flights_.back().recorded && !torn_; }
    void bind(const Request& request);
    bool is_gone() const { return gone_; }
    bool waits() const { return !gone_ && (connecting_ || !flights_.empty() || (failure && !torn_) || closing || left_); }

    // On the issuing thread, without the mutex.
    void begin(Request request);
    bool advance();  // true where something has changed

private:
    friend class Plan;
    void connect(const collectives::Operation& operation);
    bool poll_connection();
    bool poll_flights();
    bool push(Flight& flight);  // takes steps as far as NCCL allows; true: all
    void finish(Flight& flight);
    void tear_down();
    bool drain();
    bool shut();
    void vanish();
    void blame(const collectives::Operation& operation, Reason reason, const std::string& cause);
    void accept(Result result, const char* what);  // throws Failure unless it went well, or goes on
    Result state();                                // of the communicator
    std::string sentence(Result result, const char* what) const;
    CUdeviceptr scratch(size_t bytes);  // until the request has ended
    Notes take_notes();
    void enroll(void* memory, size_t bytes);
    CUdeviceptr allocate(size_t bytes);
    void release();

    Issuer& issuer_;
    const UniqueId id_;
    const std::unique_ptr<Configuration> configuration_;
    const Clock::duration timeout_, connect_timeout_;
    std::function<void()> completed_;

    Comm comm_ = nullptr;
    CUstream stream_ = nullptr;
    std::optional<collectives::Operation> connecting_;
    Clock::time_point connect_deadline_, shut_deadline_;
    bool ready_ = false, torn_ = false, left_ = false, gone_ = false, finalizing_ = false, drained_ = true;
    std::deque<Flight> flights_;
    bool launching_ = false;  // NCCL has not taken the last step yet

    struct Block {
        CUdeviceptr memory;
        size_t bytes;
    };
    std::vector<Block> blocks_;  // the last one is used, the others may still be
    size_t used_ = 0;
    std::vector<void*> allocations_;
    std::vector<void*> host_allocations_;
    std::vector<Notes> notes_;
    std::vector<void*> enrolled_;  // NCCL's handles
};

}  // namespace terse::nccl
