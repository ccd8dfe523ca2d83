// The one thread that calls NCCL for a rank. All of a rank's communicators are on one device and share it, so that their
// operations begin in the order of the calls, which must be the same on every rank: kernels of two communicators that began in
// different orders can wait for each other for ever.
//
// It never waits inside a call. NCCL's calls answer "in progress", and are asked again; what runs on the device is an event that
// is queried; between the rounds it sleeps a little. So a deadline or an abort finds it awake.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../communicator.h"
#include "library.h"

namespace terse::nccl {

class Member;  // a communicator, as this thread sees it

struct Call {
    collectives::Operation operation;
    CUevent ready = nullptr;  // recorded on the caller's stream when it called
};

// What becomes one group of NCCL's: one operation, or the sends and receives of one turn.
struct Request {
    std::shared_ptr<Member> member;
    std::vector<Call> calls;
};

class Issuer {
public:
    Issuer(const Library& nccl, const Driver& cuda, int device);  // throws std::runtime_error
    ~Issuer();
    Issuer(const Issuer&) = delete;

    const Library& nccl;
    const Driver& cuda;
    const int device;

    // Throws Failure where CUDA refuses.
    void check(CUresult result, const char* what) const;

    CUevent mark(CUstream stream);  // from any thread: an event of all that is on the stream now
    void* allocate(size_t bytes);                  // from any thread: as NCCL wants memory that it registers, where it can
    void free(void* memory);                       // from any thread
    CUevent take_event();           // on a thread with the context
    void give_event(CUevent event);

    std::mutex mutex;  // of the queue, and of what members share with other threads
    std::condition_variable changed;
    std::deque<Request> queue;  // in the order of the calls, of all members
    std::vector<std::shared_ptr<Member>> members;

private:
    void run();
    bool issue();
    void with_context(const std::function<void()>& what);

    CUdevice cuda_device_ = 0;
    CUcontext context_ = nullptr;
    std::vector<CUevent> events_;
    std::mutex events_mutex_;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace terse::nccl
