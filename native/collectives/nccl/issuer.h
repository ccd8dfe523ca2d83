// The one thread that calls NCCL for a rank. All of a rank's communicators are on one device and share it, so that their
// operations begin in the order of the calls, which must be the same on every rank: kernels of two communicators that began in
// different orders can wait for each other for ever.
//
// It never waits inside a call. NCCL's calls answer "in progress", and are asked again; what runs on the device is an event that
// is queried; between the rounds it sleeps a little. So a deadline or an abort finds it awake. What may wait for all kernels of the
// device, as whatever frees memory there does, is left to threads beside it: one of those kernels may only end because this thread
// sees its deadline pass.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
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

// A split of a group: its place in the order is taken when it is called, and what is to happen there is known when the ranks have
// told each other.
struct Split {
    collectives::Clock::time_point deadline;  // for the other ranks to come
    bool settled = false;
    int color = no_color, key = 0;
    std::shared_ptr<Member> child;  // none where the color is none
    Comm made = nullptr;            // a thread of NCCL's writes it, until the communicator that is split is done with it
};

// What becomes one group of NCCL's: one operation, or the sends and receives of one turn.
struct Request {
    std::shared_ptr<Member> member;
    std::vector<Call> calls;
    std::shared_ptr<Split> split;
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
    void* allocate(size_t bytes);   // from any thread: as NCCL wants memory that it registers, where it can
    // For memory that others use. `free`, from any thread, returns at once; it is gone when no registration of it is left.
    void* lend(size_t bytes);
    void free(void* memory);
    CUevent take_event();           // on a thread with the context
    void give_event(CUevent event);

    std::mutex mutex;  // of the queue, and of what members share with other threads
    std::condition_variable changed;
    std::deque<Request> queue;  // in the order of the calls, of all members
    std::vector<std::shared_ptr<Member>> members;

    // On the issuing thread: no operation of any member is under way.
    bool is_idle() const;
    // On a thread beside this one, with the context; it may outlive all else here.
    void aside(const char* name, std::function<void()> what) const;
    bool stuck = false;  // such a thread will not come back

private:
    // Frees memory beside the issuing thread.
    struct Reclaimer {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<void*> memory;
        bool ending = false, over = false;
    };
    void run();
    bool issue();
    void with_context(const std::function<void()>& what);
    bool reap();

    CUdevice cuda_device_ = 0;
    CUcontext context_ = nullptr;
    std::vector<CUevent> events_;
    std::mutex events_mutex_;
    std::map<void*, size_t> lent_;
    std::map<void*, size_t> doomed_;  // that is to be freed, and that a registration may still name
    const std::shared_ptr<Reclaimer> reclaimer_ = std::make_shared<Reclaimer>();
    bool ending_ = false;
    std::thread thread_;
};

// The opposite of `allocate`. May wait for the device; an error cannot be helped here.
void release(const Library& nccl, const Driver& cuda, void* memory);

}  // namespace terse::nccl
