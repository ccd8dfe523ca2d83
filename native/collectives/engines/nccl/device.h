// One CUDA device, and the one thread that makes a rank's NCCL calls on it.
//
// All communicators of a rank share this thread, so their operations start in the order of the calls, which must be the
// same on every rank: kernels of two communicators that start in different orders can wait for each other for ever.
//
// The thread never blocks in a call. An NCCL call that answers "in progress" is polled, work on the device ends with an
// event that is queried, and between two rounds the thread sleeps for some microseconds. So it always sees a deadline
// or an abort. Calls that may wait for every kernel on the device (freeing memory, ending a communicator) run on other
// threads: one of those kernels may only end because this thread sees its deadline pass.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "communicator/communicator.h"
#include "engines/nccl/library.h"

namespace terse::nccl {

class NcclComm;

struct Call {
    collectives::Operation operation;
    CUevent ready = nullptr;  // recorded on the caller's stream at the call
};

// A split takes its place in the order of operations when it is called. Its color and key follow when the ranks have
// exchanged them.
struct Split {
    collectives::Clock::time_point deadline;  // for the other ranks' calls
    bool settled = false;                     // color and key are known
    int color = no_color, key = 0;
    std::shared_ptr<NcclComm> child;  // null for no_color
    Comm made = nullptr;  // written by a thread of NCCL until the parent communicator is done with the split
};

// What goes to NCCL as one group call: one operation, or several sends and receives.
struct GroupCall {
    std::shared_ptr<NcclComm> comm;
    std::vector<Call> calls;
    std::shared_ptr<Split> split;
};

bool use(const std::vector<Call>& calls, const void* memory, size_t bytes);  // some of it

class Device {
public:
    Device(const Library& nccl, const Driver& cuda, int ordinal);  // throws std::runtime_error
    ~Device();
    Device(const Device&) = delete;

    const Library& nccl;
    const Driver& cuda;
    const int ordinal;

    // Throws Failure if `result` is an error of the call `what`.
    void check(CUresult result, const char* what) const;

    CUevent record_event(CUstream stream);  // any thread: an event after all work now on the stream
    CUevent take_event();                   // on a thread with the CUDA context
    void return_event(CUevent event);

    // Memory that NCCL can register, if the library allocates such memory. Any thread.
    void* allocate(size_t bytes);
    // The same for callers outside of this engine. `free_buffer` returns at once; the memory is freed when no
    // communicator has it registered, and every operation on it has ended.
    void* allocate_buffer(size_t bytes);
    void free_buffer(void* memory);

    std::mutex mutex;  // guards the queue, and what communicators share with other threads
    std::condition_variable changed;
    std::deque<GroupCall> queue;  // of all communicators, in the order of the calls
    std::vector<std::shared_ptr<NcclComm>> comms;

    // On this device's thread: no communicator has an operation in flight.
    bool is_idle() const;
    // Runs `what` on a new detached thread with the CUDA context. That thread may outlive this object.
    void run_detached(const char* thread_name, std::function<void()> what) const;
    bool stuck = false;  // a detached thread will never return

private:
    // Frees memory on a thread of its own.
    struct Reclaimer {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<void*> memory;
        bool ending = false, over = false;
    };
    void run();
    bool start_next();
    void with_context(const std::function<void()>& what);
    void start_reclaimer();
    bool stop_reclaimer();  // false: it hangs
    bool reclaim();

    CUdevice cuda_device_ = 0;
    CUcontext context_ = nullptr;
    std::vector<CUevent> events_;
    std::mutex events_mutex_;
    std::map<void*, size_t> buffers_;  // from allocate_buffer
    std::map<void*, size_t> freed_;    // from free_buffer; a communicator may still use them
    const std::shared_ptr<Reclaimer> reclaimer_ = std::make_shared<Reclaimer>();
    bool ending_ = false;
    std::thread thread_;
};

// Frees memory of `allocate`. May wait for the device. Errors are ignored: nothing can be done about them here.
void release(const Library& nccl, const Driver& cuda, void* memory);

}  // namespace terse::nccl
