// One thread of the process makes all MPI calls (MPI_THREAD_FUNNELED), so any build of MPI works. It starts MPI, starts
// sends and receives, and polls them. MPI moves bytes only inside its calls, so the thread keeps polling, more rarely,
// while no transfer waits here: another rank may still wait for data that this one has sent.
//
//  - MPI cannot give memory back from a transfer that has begun, and cannot end one whose other side is gone. So MPI
//    gets buffers of its own, and data is copied; an unwanted transfer keeps its buffer until it ends.
//  - A few segments of each tag queue (peer, tag, direction) are in flight at a time. The others wait in order.
#pragma once
#include "engines/mpi/mpi.h"

// The C interface only: the old C++ interface needs another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

namespace terse::collectives::mpi {

struct Post;

struct TagQueue {
    int peer, tag;
    bool sends;
    std::deque<std::shared_ptr<Post>> waiting;
    size_t active = 0;
    bool closed = false;  // its group is closed
};

struct Post {
    TagQueue* queue = nullptr;
    uint8_t* data = nullptr;  // the caller's
    size_t bytes = 0;
    std::unique_ptr<uint8_t[]> buffer;  // MPI reads or writes it
    MPI_Request request = MPI_REQUEST_NULL;
    enum { waiting, copying, active, done } state = waiting;
    bool unwanted = false;  // its Transfer was destroyed
    bool interrupted = false;
    std::string failure;
    Reason reason = Reason::transport;
    std::condition_variable changed;
};

class Process final : public Mpi {
public:
    MpiWorld start(Clock::time_point deadline) override;
    std::unique_ptr<RendezvousEngine> make(int rank, int size) override;
    std::unique_ptr<Engine> make_bootstrap(int round) override;
    void finish() noexcept override;

    // The caller holds the lock.
    void submit(std::shared_ptr<Post> post, int peer, int tag, bool sends);
    void cancel(const std::shared_ptr<Post>& post);
    void leave(int peer, int tag, bool sends);
    int take_tags(int blocks);  // of eight tags: four for a group, four for a bootstrap

    std::mutex mutex;
    int rank = 0, size = 1;
    uint64_t job = 0;
    size_t engines = 0;   // not released yet
    size_t waiting = 0;   // threads that wait for a transfer
    bool failed = false;  // an engine was aborted before its release, or an MPI call failed
    void wake() { news_.notify_one(); }

private:
    enum class State { starting, running, ended };

    void begin_mpi();
    void run();
    // Starts the transfers that may begin, and completes those that have ended. True if there was any.
    bool step(std::unique_lock<std::mutex>& lock);
    void begin_transfer(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Post>& post);
    bool test(std::unique_lock<std::mutex>& lock);
    void settle(const std::shared_ptr<Post>& post, int error);

    // Buffers of one segment are reused: allocating a new one costs as much as the copy.
    std::unique_ptr<uint8_t[]> take_buffer(size_t bytes);
    void return_buffer(std::unique_ptr<uint8_t[]> memory, size_t bytes);

    std::thread thread_;
    State state_ = State::starting;
    bool ending_ = false;
    std::string why_, library_;
    std::condition_variable changed_, news_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    int highest_tag_ = 32767, next_tags_ = 0;
    std::map<std::tuple<int, int, bool>, std::unique_ptr<TagQueue>> tag_queues_;
    std::set<TagQueue*> ready_;
    std::set<TagQueue*> left_;
    std::vector<std::shared_ptr<Post>> active_, unwanted_;
    std::vector<MPI_Request> requests_;  // of active_, in its order
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
    std::vector<std::unique_ptr<uint8_t[]>> spare_;
    size_t memory_ = 0;
};

}  // namespace terse::collectives::mpi
