// One thread of the process makes all MPI calls (MPI_THREAD_FUNNELED), so any build of MPI works. It starts MPI, starts sends and
// receives, and polls them. MPI moves bytes only inside its calls, so the thread keeps polling, more rarely, while no transfer
// waits here: another rank may still wait for data that this one has sent.
//
//  - MPI cannot give memory back from a transfer that has begun, and cannot end one whose other side is gone. So MPI gets buffers of this
//    engine, and data is copied; an unwanted transfer keeps its buffer until it ends.
//  - A few segments of each tag queue (peer, tag, direction) are in flight at a time. The others wait in order.
//  - Each rank of each group receives on four tags of its own, one for each slot, and tells them to the other ranks (addresses). So no
//    message reaches another group, and ranks need not agree on numbers.
//  - This engine does not notice that a rank is gone. The rendezvous does, and abort wakes the transfers that wait.
#include "engines/mpi/mpi.h"

// The C interface only: the old C++ interface needs another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace terse::collectives {
namespace {

constexpr size_t segment = 1 << 20;         // the size of most transfers
constexpr size_t most_in_flight = 4;        // transfers of one tag queue
constexpr size_t most_memory = 128 << 20;   // of all transfers in flight; beyond it each tag queue has one, because with none ranks could deadlock
constexpr auto exit_timeout = std::chrono::seconds(30);

// What a rank tells another rank: its rank in MPI, and the first of its four tags.
struct Address {
    uint64_t job;  // a random number of the job's first process
    int32_t rank, tag;
};

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

std::string words_of(int error) {
    char text[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    return MPI_Error_string(error, text, &length) == MPI_SUCCESS ? std::string(text, length) : "error " + std::to_string(error);
}

class Process final : public Mpi {
public:
    MpiWorld start(Clock::time_point deadline) override {
        std::unique_lock lock(mutex);
        if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
        if (!changed_.wait_until(lock, deadline, [&] { return state_ != State::starting; }))
            throw Failure(Reason::timeout, -1, "MPI did not start in time: every process of the job must call it, and one has not");
        if (state_ != State::running) throw Failure(Reason::transport, -1, why_.empty() ? "MPI has ended in this process" : why_);
        return {rank, size, library_};
    }

    std::unique_ptr<RendezvousEngine> make(int rank, int size) override;
    std::unique_ptr<Engine> make_bootstrap(int round) override;

    void finish() noexcept override {
        std::unique_lock lock(mutex);
        if (!thread_.joinable()) return;
        ending_ = true;
        news_.notify_all();
        // MPI_Init or MPI_Finalize may wait for ever for another process. This process ends all the same.
        if (changed_.wait_for(lock, state_ == State::starting ? Clock::duration(0) : exit_timeout, [&] { return state_ == State::ended; })) {
            lock.unlock();
            thread_.join();
        } else {
            thread_.detach();
        }
    }

    // The caller holds the lock.
    void submit(std::shared_ptr<Post> post, int peer, int tag, bool sends) {
        auto& queue = tag_queues_[{peer, tag, sends}];
        if (!queue) queue = std::make_unique<TagQueue>(TagQueue{peer, tag, sends, {}, 0, false});
        post->queue = queue.get();
        queue->waiting.push_back(std::move(post));
        ready_.insert(queue.get());
        news_.notify_one();
    }
    void cancel(const std::shared_ptr<Post>& post) {
        if (post->state == Post::waiting) std::erase(post->queue->waiting, post);
        if (post->state != Post::active) return;
        post->unwanted = true;
        if (post->queue->sends) return;
        unwanted_.push_back(post);
        news_.notify_one();
    }
    void leave(int peer, int tag, bool sends) {
        const auto found = tag_queues_.find({peer, tag, sends});
        if (found == tag_queues_.end()) return;
        found->second->closed = true;
        left_.insert(found->second.get());
        news_.notify_one();
    }
    int take_tags(int blocks) {  // of eight tags: four for a group, four for a bootstrap
        if (blocks > highest_tag_ / 8 - next_tags_) throw Failure(Reason::argument, -1, "MPI has no tags left for another group: this process has made too many groups");
        const int first = next_tags_ * 8 + 4;
        next_tags_ += blocks;
        return first;
    }

    std::mutex mutex;
    int rank = 0, size = 1;
    uint64_t job = 0;
    size_t engines = 0;    // not released yet
    size_t waiting = 0;    // threads that wait for a transfer
    bool failed = false;   // an engine was aborted before its release, or an MPI call failed
    void wake() { news_.notify_one(); }

private:
    enum class State { starting, running, ended };

    void begin_mpi() {
        int given = MPI_THREAD_SINGLE, already = 0, over = 0;
        MPI_Initialized(&already);
        MPI_Finalized(&over);
        if (already || over) throw std::runtime_error("other code has already started MPI in this process");
        if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given); error != MPI_SUCCESS) throw std::runtime_error("MPI does not start: " + words_of(error));
        const auto check = [](int error) {
            if (error != MPI_SUCCESS) throw std::runtime_error("MPI: " + words_of(error));
        };
        for (MPI_Comm each : {MPI_COMM_WORLD, MPI_COMM_SELF}) check(MPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN));
        if (given < MPI_THREAD_FUNNELED) throw std::runtime_error("this MPI was built without support for threads");
        check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
        check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
        check(MPI_Comm_rank(comm_, &rank));
        check(MPI_Comm_size(comm_, &size));
        std::random_device random;
        job = static_cast<uint64_t>(random()) << 32 | random();
        check(MPI_Bcast(&job, 1, MPI_UINT64_T, 0, comm_));
        int* bound = nullptr;
        int known = 0;
        check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &known));
        highest_tag_ = known ? *bound : 32767;
        char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {};
        int length = 0;
        check(MPI_Get_library_version(text, &length));
        library_ = std::string(text, std::find_if(text, text + length, [](char c) { return c == ',' || c == '\n'; }));
    }

    void run() {
        pthread_setname_np(pthread_self(), "terse-mpi");
        try {
            begin_mpi();
        } catch (const std::exception& error) {
            std::lock_guard lock(mutex);
            why_ = error.what();
            state_ = State::ended;
            changed_.notify_all();
            return;
        }
        std::unique_lock lock(mutex);
        state_ = State::running;
        changed_.notify_all();
        for (int idle = 0; !ending_;) {
            if (step(lock)) {
                idle = 0;
            } else if (waiting > 0 && ++idle < 100) {
                lock.unlock();
                sched_yield();
                lock.lock();
            } else if (waiting > 0) {
                news_.wait_for(lock, std::chrono::microseconds(50));
            } else {
                news_.wait_for(lock, std::chrono::milliseconds(engines > 0 ? 1 : 20));
            }
        }
        while (step(lock)) {
        }
        const bool orderly = !failed && engines == 0 && std::ranges::all_of(active_, [](const auto& post) { return post->unwanted && !post->queue->sends; });
        lock.unlock();
        if (orderly) {
            MPI_Comm_free(&comm_);
            MPI_Finalize();
        }
        lock.lock();
        state_ = State::ended;
        changed_.notify_all();
    }

    // Starts the transfers that may begin, and completes those that have ended. True if there was any.
    bool step(std::unique_lock<std::mutex>& lock) {
        bool moved = false;
        while (!ready_.empty()) {
            TagQueue* queue = *ready_.begin();
            ready_.erase(ready_.begin());
            // The rest follows when a transfer of this tag queue has ended.
            while (!queue->waiting.empty() && queue->active < most_in_flight && (queue->active == 0 || memory_ < most_memory)) {
                const auto post = queue->waiting.front();
                queue->waiting.pop_front();
                begin_transfer(lock, post);
                moved = true;
            }
        }
        for (const auto& post : std::exchange(unwanted_, {}))
            if (post->state == Post::active) {
                lock.unlock();
                MPI_Cancel(&post->request);
                lock.lock();
                moved = true;
            }
        moved |= test(lock);
        for (TagQueue* queue : std::exchange(left_, {}))
            if (queue->active == 0 && queue->waiting.empty()) {
                ready_.erase(queue);  // a transfer that was submitted and cancelled while this thread was in MPI
                tag_queues_.erase({queue->peer, queue->tag, queue->sends});
            }
        return moved;
    }

    void begin_transfer(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Post>& post) {
        TagQueue& queue = *post->queue;
        queue.active++;
        memory_ += post->bytes;
        post->buffer = take_buffer(post->bytes);
        post->state = Post::copying;
        lock.unlock();
        const int bytes = static_cast<int>(post->bytes);
        int error;
        if (queue.sends) {
            std::memcpy(post->buffer.get(), post->data, post->bytes);
            error = MPI_Isend(post->buffer.get(), bytes, MPI_BYTE, queue.peer, queue.tag, comm_, &post->request);
        } else {
            error = MPI_Irecv(post->buffer.get(), bytes, MPI_BYTE, queue.peer, queue.tag, comm_, &post->request);
        }
        lock.lock();
        post->state = Post::active;
        post->changed.notify_all();
        if (error == MPI_SUCCESS) {
            active_.push_back(post);
            requests_.push_back(post->request);
        } else {
            settle(post, error);
        }
    }

    bool test(std::unique_lock<std::mutex>& lock) {
        if (active_.empty()) return false;
        const int count = static_cast<int>(active_.size());
        indices_.resize(count);
        statuses_.resize(count);
        int ended = 0;
        lock.unlock();
        const int outcome = MPI_Testsome(count, requests_.data(), &ended, indices_.data(), statuses_.data());
        lock.lock();
        if (outcome != MPI_SUCCESS && outcome != MPI_ERR_IN_STATUS) {
            // No transfer in flight will ever end.
            for (const auto& post : active_) settle(post, outcome);
            active_.clear();
            requests_.clear();
            return true;
        }
        if (ended == MPI_UNDEFINED || ended == 0) return false;
        for (int i = 0; i < ended; i++) {
            const auto post = active_[indices_[i]];
            const int error = outcome == MPI_ERR_IN_STATUS ? statuses_[i].MPI_ERROR : MPI_SUCCESS;
            if (error == MPI_SUCCESS && !post->queue->sends && !post->unwanted) {
                int received = 0;
                MPI_Get_count(&statuses_[i], MPI_BYTE, &received);
                post->state = Post::copying;
                lock.unlock();
                std::memcpy(post->data, post->buffer.get(), received);
                lock.lock();
            }
            settle(post, error);
        }
        std::sort(indices_.begin(), indices_.begin() + ended, std::greater());
        for (int i = 0; i < ended; i++) {
            active_[indices_[i]] = std::move(active_.back());
            active_.pop_back();
            requests_[indices_[i]] = requests_.back();
            requests_.pop_back();
        }
        return true;
    }

    void settle(const std::shared_ptr<Post>& post, int error) {
        TagQueue& queue = *post->queue;
        queue.active--;
        if (!queue.waiting.empty()) ready_.insert(&queue);
        if (queue.closed) left_.insert(&queue);
        memory_ -= post->bytes;
        return_buffer(std::move(post->buffer), post->bytes);
        if (error != MPI_SUCCESS) {
            failed = true;
            int kind = MPI_ERR_OTHER;
            MPI_Error_class(error, &kind);
            post->reason = kind == MPI_ERR_TRUNCATE ? Reason::mismatch : Reason::transport;
            post->failure = words_of(error);
        }
        post->state = Post::done;
        post->changed.notify_all();
    }

    // Buffers of one segment are reused: allocating a new one costs as much as the copy.
    std::unique_ptr<uint8_t[]> take_buffer(size_t bytes) {
        if (bytes != segment || spare_.empty()) return std::make_unique_for_overwrite<uint8_t[]>(bytes);
        auto memory = std::move(spare_.back());
        spare_.pop_back();
        return memory;
    }
    void return_buffer(std::unique_ptr<uint8_t[]> memory, size_t bytes) {
        if (bytes == segment && spare_.size() < 16) spare_.push_back(std::move(memory));
    }

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

class MpiEngine;

class MpiTransfer final : public Transfer {
public:
    MpiTransfer(MpiEngine& engine, int peer, int mpi_rank, int tag, void* memory, size_t bytes, bool sends);
    ~MpiTransfer() override;
    void wait(Clock::time_point deadline) override;
    void interrupt() noexcept override;

private:
    MpiEngine& engine_;
    const int peer_;
    const std::shared_ptr<Post> post_ = std::make_shared<Post>();
};

class MpiEngine final : public RendezvousEngine {
public:
    MpiEngine(Process& process, int rank, int size, std::vector<Address> mine, std::vector<Address> peers)
        : RendezvousEngine(rank, size), process(process), mine_(std::move(mine)), peers_(std::move(peers)) {
        process.engines++;
    }
    ~MpiEngine() override { release(); }

    std::vector<std::string> addresses() const override {
        std::vector<std::string> blobs;
        for (int peer = 0; peer < size; peer++) blobs.push_back(peer == rank ? "" : std::string(reinterpret_cast<const char*>(&mine_[peer]), sizeof(Address)));
        return blobs;
    }
    void set_peers(std::vector<std::string> blobs) override {
        peers_.resize(size);
        for (int peer = 0; peer < size; peer++)
            if (peer != rank) std::memcpy(&peers_[peer], blobs[peer].data(), sizeof(Address));
    }

    bool connect(Clock::time_point) override {
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank) continue;
            const auto refuse = [&](const std::string& why) { throw Failure(Reason::argument, peer, "rank " + std::to_string(peer) + " " + why); };
            if (peers_[peer].job != process.job) refuse("belongs to another MPI job; start all ranks with one mpirun");
            for (int other = 0; other < peer; other++)
                if (other != rank && mine_[other].tag == mine_[peer].tag && peers_[other].rank == peers_[peer].rank)
                    refuse("is in the same process as rank " + std::to_string(other) + "; either all ranks are in one process, or each has its own");
        }
        return true;
    }

    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override {
        const Address& to = peers_[peer];
        return std::make_unique<MpiTransfer>(*this, peer, to.rank, to.tag + slot, const_cast<void*>(data), bytes, true);
    }
    std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) override {
        return std::make_unique<MpiTransfer>(*this, peer, peers_[peer].rank, mine_[peer].tag + slot, data, room, false);
    }

    void abort() noexcept override {
        std::lock_guard lock(process.mutex);
        if (released_) return;
        aborted = true;
        process.failed = true;
        for (Post* post : posts) post->changed.notify_all();
    }

    void release() noexcept override {
        std::lock_guard lock(process.mutex);
        if (released_) return;
        released_ = true;
        process.engines--;
        for (int peer = 0; peer < size && !peers_.empty(); peer++)
            for (int slot = 0; peer != rank && slot < 4; slot++) {
                process.leave(peers_[peer].rank, peers_[peer].tag + slot, true);
                process.leave(peers_[peer].rank, mine_[peer].tag + slot, false);
            }
        process.wake();
    }

    Process& process;
    std::set<Post*> posts;  // guarded, as the next two, by the process's lock
    bool aborted = false;

private:
    const std::vector<Address> mine_;
    std::vector<Address> peers_;
    bool released_ = false;
};

MpiTransfer::MpiTransfer(MpiEngine& engine, int peer, int mpi_rank, int tag, void* memory, size_t bytes, bool sends) : engine_(engine), peer_(peer) {
    post_->data = static_cast<uint8_t*>(memory);
    post_->bytes = bytes;
    std::lock_guard lock(engine_.process.mutex);
    engine_.posts.insert(post_.get());
    engine_.process.submit(post_, mpi_rank, tag, sends);
}

MpiTransfer::~MpiTransfer() {
    std::unique_lock lock(engine_.process.mutex);
    post_->changed.wait(lock, [&] { return post_->state != Post::copying; });
    engine_.posts.erase(post_.get());
    engine_.process.cancel(post_);
}

void MpiTransfer::wait(Clock::time_point deadline) {
    std::unique_lock lock(engine_.process.mutex);
    if (engine_.process.waiting++ == 0) engine_.process.wake();
    const bool in_time = post_->changed.wait_until(lock, deadline, [&] { return post_->state == Post::done || engine_.aborted || post_->interrupted; });
    engine_.process.waiting--;
    if (!in_time) throw timed_out(peer_);
    if (post_->state == Post::done && post_->failure.empty()) return;
    if (engine_.aborted || post_->state != Post::done) {
        post_->interrupted = false;
        throw Failure(Reason::aborted, -1, "aborted");
    }
    throw Failure(post_->reason, peer_, (post_->queue->sends ? "the send to rank " : "the receive from rank ") + std::to_string(peer_) + " failed (" + post_->failure + ")");
}

void MpiTransfer::interrupt() noexcept {
    std::lock_guard lock(engine_.process.mutex);
    post_->interrupted = true;
    post_->changed.notify_all();
}

std::unique_ptr<RendezvousEngine> Process::make(int group_rank, int group_size) {
    std::lock_guard lock(mutex);
    // If several ranks share a process, their messages differ only in the tags, so each peer gets tags of its own.
    const bool shared = group_size > size;
    const int first = take_tags(shared ? group_size : 1);
    std::vector<Address> mine(group_size);
    for (int peer = 0; peer < group_size; peer++) mine[peer] = {job, rank, first + (shared ? 8 * peer : 0)};
    return std::make_unique<MpiEngine>(*this, group_rank, group_size, std::move(mine), std::vector<Address>());
}

std::unique_ptr<Engine> Process::make_bootstrap(int round) {
    std::lock_guard lock(mutex);
    if (round > highest_tag_ / 8 - 1) throw Failure(Reason::argument, -1, "MPI has no tags left for another world: this process has joined too many worlds");
    std::vector<Address> mine(size), peers(size);
    for (int peer = 0; peer < size; peer++) {
        mine[peer] = {job, rank, 8 * round};
        peers[peer] = {job, peer, 8 * round};
    }
    return std::make_unique<MpiEngine>(*this, rank, size, std::move(mine), std::move(peers));
}

}  // namespace
}  // namespace terse::collectives

extern "C" __attribute__((visibility("default"))) const char* terse_mpi_interface() { return TERSE_MPI_INTERFACE; }

extern "C" __attribute__((visibility("default"))) terse::collectives::Mpi* terse_mpi() {
    static auto* process = new terse::collectives::Process;  // never destroyed: its thread may outlive every static object
    return process;
}
