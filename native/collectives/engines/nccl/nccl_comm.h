// One NCCL communicator, driven by the device's thread: connecting → ready → shutting down → gone.
//
// nccl_comm.cc: connecting, splitting, operations.   nccl_comm_memory.cc: scratch, notes, registered buffers.
// nccl_comm_shutdown.cc: its end, in order or after an error.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "engines/nccl/config.h"
#include "engines/nccl/device.h"

namespace terse::nccl {

using collectives::Clock;
using collectives::Failure;
using collectives::Reason;

// One piece of CUDA work, or one group of NCCL calls. The next step may start when NCCL has taken this one: until then
// nothing else may be put on the stream.
using Step = std::function<Result()>;

struct CopyToCpu {
    void* to;
    CUdeviceptr from;
    size_t bytes;
};

// Where the notes of one all-to-all lie.
struct Notes {
    CUdeviceptr memory = 0;       // this rank's note, then one of every rank
    uint8_t* received = nullptr;  // on the CPU: one of every rank
};

// A group call in flight: steps that NCCL has still to take, then an event.
struct Work {
    GroupCall group_call;
    std::deque<Step> steps;
    std::vector<CopyToCpu> copies;  // start after the event: until then a failure must not change the caller's memory
    std::optional<Notes> notes;
    CUevent done = nullptr;
    bool recorded = false;
    Clock::time_point deadline;
};

// Shared with the thread that ends a communicator. Aborting or destroying one waits for everything that runs on the
// device.
struct Shutdown {
    std::atomic<bool> hurry = false;  // do not wait for the other ranks
    std::atomic<bool> quiet = false;  // nothing touches the callers' memory or the communicator any more
    std::atomic<bool> over = false;   // and its memory is freed
    bool drained = true;              // written before `quiet`: the stream has finished
    Clock::time_point deadline;       // NCCL's abort can hang
};

class NcclComm {
public:
    NcclComm(Device& device, int rank, int size, UniqueId id, std::unique_ptr<Configuration> configuration,
             Clock::duration timeout, Clock::duration connect_timeout, std::function<void()> completed);

    const int rank, size;
    collectives::Counters counters;

    // Any thread that holds the device's mutex.
    void complete(uint64_t id, std::optional<Failure> failure, std::vector<uint8_t> notes = {},
                  bool memory_in_use = false);
    void fail(const Failure& failure);                  // the first failure is kept
    void flush(const std::shared_ptr<NcclComm>& self);  // queues the coalesced sends and receives as one group call
    Clock::time_point operation_deadline() const { return Clock::now() + timeout_; }
    void abandon();  // nobody waits for its promises any more
    // Whether some of it is registered, or in a call that has left the queue and not ended. On the device's thread.
    bool uses(const void* memory, size_t bytes) const;
    void deregister_later(const std::shared_ptr<NcclComm>& self, void* memory, size_t bytes);  // queues the
                                                                                               // deregistration

    std::optional<Failure> failure;
    std::optional<uint64_t> closing;
    std::vector<Call> coalescing;  // sends and receives since the last flush
    std::set<uint64_t> started;    // ids of operations
    std::vector<collectives::Completion> completions;
    std::map<std::pair<int, collectives::Kind>, uint32_t> sequences;

    // The device's thread, holding the mutex.
    bool may_start(const GroupCall& group_call) const;
    bool is_busy() const { return !in_flight_.empty() && !shutdown_; }
    bool is_launching() const { return splitting_ || (is_busy() && !in_flight_.back().recorded); }
    void mark_started(const GroupCall& group_call);
    bool is_gone() const { return gone_; }
    bool needs_polling() const {
        return !gone_ &&
               (connecting_ || splitting_ || !in_flight_.empty() || (failure && !settled_) || closing || abandoned_);
    }

    // The device's thread, not holding the mutex.
    void start(GroupCall group_call);
    bool advance();  // true if something has changed

private:
    friend class Plan;
    void connect(const collectives::Operation& operation);
    void split(const GroupCall& group_call);
    void adopt(Comm made);
    bool poll_connection();
    bool poll_split();
    bool poll_work();
    bool launch(Work& work);  // as many steps as NCCL takes now; true: all
    void finish(Work& work);
    void shut_down(bool in_order);
    bool poll_shutdown(bool closes);
    void reject_all();
    void become_gone();
    void check_split_deadline(const GroupCall& group_call);  // holding the mutex
    void fail_operation(const collectives::Operation& operation, Reason reason, const std::string& cause);
    void accept(Result result, const char* what);  // throws Failure unless the call succeeded or is in progress
    Result state();                                // of the NCCL communicator
    std::string describe(Result result, const char* what) const;
    CUdeviceptr scratch(size_t bytes);  // valid until the group call has finished
    void allocate_notes();
    Notes take_notes();  // may_start has checked that some are free
    void register_buffer(void* memory, size_t bytes);
    void deregister_buffer(void* memory);
    CUdeviceptr allocate(size_t bytes);

    Device& device_;
    const UniqueId id_;
    const std::unique_ptr<Configuration> configuration_;
    const Clock::duration timeout_, connect_timeout_;
    std::function<void()> completed_;

    Comm handle_ = nullptr;
    CUstream stream_ = nullptr;
    std::optional<collectives::Operation> connecting_;
    std::optional<GroupCall> splitting_;
    Clock::time_point connect_deadline_;
    std::shared_ptr<Shutdown> shutdown_;
    bool ready_ = false, settled_ = false, abandoned_ = false, gone_ = false;  // settled: every pending promise has its
                                                                               // result
    std::deque<Work> in_flight_;
    bool launching_ = false;  // NCCL has not taken the last step yet

    struct Block {
        CUdeviceptr memory;
        size_t bytes;
    };
    std::vector<Block> blocks_;  // of scratch; the last one has free space, the others may still be in use
    size_t used_ = 0;
    std::vector<void*> allocations_;
    std::vector<void*> host_allocations_;
    std::vector<Notes> notes_;
    struct Registration {
        uintptr_t begin;
        size_t bytes;
        void* handle;  // NCCL's
    };
    std::vector<Registration> registrations_;  // guarded by the mutex
};

}  // namespace terse::nccl
