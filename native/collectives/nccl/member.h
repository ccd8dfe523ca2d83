// A communicator of NCCL's, as the issuing thread drives it: connecting → ready → ending → gone.
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

// A communicator's end, which is on a thread of its own: to abort or to destroy it waits for whatever runs on the device.
struct Ending {
    std::atomic<bool> hurries = false;  // no longer in good order
    std::atomic<bool> quiet = false;    // nothing touches the callers' memory any more, nor the communicator
    std::atomic<bool> over = false;     // and what it held is freed
    bool drained = true;                // before `quiet`: the stream has come to its end
    Clock::time_point patience;         // NCCL's abort can hang
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
    Clock::time_point patience() const { return Clock::now() + timeout_; }
    void leave();                       // nobody waits for it any more
    bool holds(const void* memory, size_t bytes) const;  // has registered some of it
    void forget(const std::shared_ptr<Member>& self, void* memory, size_t bytes);  // deregisters it when its turn comes

    std::optional<Failure> failure;
    std::optional<uint64_t> closing;
    std::vector<Call> forming;         // sends and receives of this turn
    std::set<uint64_t> bound;          // operations that have begun
    std::vector<collectives::Completion> completions;
    std::map<std::pair<int, collectives::Kind>, uint32_t> sequences;

    // With the mutex, on the issuing thread.
    bool may_begin(const Request& request) const;
    bool is_busy() const { return !flights_.empty() && !ending_; }
    bool is_launching() const { return splitting_ || (is_busy() && !flights_.back().recorded); }
    void bind(const Request& request);
    bool is_gone() const { return gone_; }
    bool waits() const { return !gone_ && (connecting_ || splitting_ || !flights_.empty() || (failure && !torn_) || closing || left_); }

    // On the issuing thread, without the mutex.
    void begin(Request request);
    bool advance();  // true where something has changed

private:
    friend class Plan;
    void connect(const collectives::Operation& operation);
    void split(const Request& request);
    void adopt(Comm made);
    bool poll_connection();
    bool poll_split();
    bool poll_flights();
    bool push(Flight& flight);  // takes steps as far as NCCL allows; true: all
    void finish(Flight& flight);
    void end(bool in_order);
    bool poll_end(bool closes);
    void settle();
    void vanish();
    void expire(const Request& request);  // with the mutex
    void blame(const collectives::Operation& operation, Reason reason, const std::string& cause);
    void accept(Result result, const char* what);  // throws Failure unless it went well, or goes on
    Result state();                                // of the communicator
    std::string sentence(Result result, const char* what) const;
    CUdeviceptr scratch(size_t bytes);  // until the request has ended
    void make_notes();
    Notes take_notes();  // may_begin has seen that there are some
    void enroll(void* memory, size_t bytes);
    void disenroll(void* memory);
    CUdeviceptr allocate(size_t bytes);

    Issuer& issuer_;
    const UniqueId id_;
    const std::unique_ptr<Configuration> configuration_;
    const Clock::duration timeout_, connect_timeout_;
    std::function<void()> completed_;

    Comm comm_ = nullptr;
    CUstream stream_ = nullptr;
    std::optional<collectives::Operation> connecting_;
    std::optional<Request> splitting_;
    Clock::time_point connect_deadline_;
    std::shared_ptr<Ending> ending_;
    bool ready_ = false, torn_ = false, left_ = false, gone_ = false;
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
    struct Enrolled {
        uintptr_t begin;
        size_t bytes;
        void* handle;  // NCCL's
    };
    std::vector<Enrolled> enrolled_;  // with the mutex
};

}  // namespace terse::nccl
