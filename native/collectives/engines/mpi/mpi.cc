// MPI's messages as an Engine.
//
//  - Each rank of each group receives on four tags of its own, one for each slot, and tells them to the other ranks
//    (addresses). So no message reaches another group, and ranks need not agree on numbers.
//  - This engine does not notice that a rank is gone. The rendezvous does, and abort wakes the transfers that wait.
#include "engines/mpi/process.h"

#include <cstring>
#include <utility>

namespace terse::collectives::mpi {
namespace {

// What a rank tells another rank: its rank in MPI, and the first of its four tags.
struct Address {
    uint64_t job;  // a random number of the job's first process
    int32_t rank, tag;
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
        for (int peer = 0; peer < size; peer++)
            blobs.push_back(peer == rank ? ""
                                         : std::string(reinterpret_cast<const char*>(&mine_[peer]), sizeof(Address)));
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
            const auto refuse = [&](const std::string& why) {
                throw Failure(Reason::argument, peer, "rank " + std::to_string(peer) + " " + why);
            };
            if (peers_[peer].job != process.job) refuse("belongs to another MPI job; start all ranks with one mpirun");
            for (int other = 0; other < peer; other++)
                if (other != rank && mine_[other].tag == mine_[peer].tag && peers_[other].rank == peers_[peer].rank)
                    refuse("is in the same process as rank " + std::to_string(other) +
                           "; either all ranks are in one process, or each has its own");
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

MpiTransfer::MpiTransfer(MpiEngine& engine, int peer, int mpi_rank, int tag, void* memory, size_t bytes, bool sends)
    : engine_(engine), peer_(peer) {
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
    const bool in_time = post_->changed.wait_until(
        lock, deadline, [&] { return post_->state == Post::done || engine_.aborted || post_->interrupted; });
    engine_.process.waiting--;
    if (!in_time) throw timed_out(peer_);
    if (post_->state == Post::done && post_->failure.empty()) return;
    if (engine_.aborted || post_->state != Post::done) {
        post_->interrupted = false;
        throw Failure(Reason::aborted, -1, "aborted");
    }
    throw Failure(post_->reason, peer_,
                  (post_->queue->sends ? "the send to rank " : "the receive from rank ") + std::to_string(peer_) +
                      " failed (" + post_->failure + ")");
}

void MpiTransfer::interrupt() noexcept {
    std::lock_guard lock(engine_.process.mutex);
    post_->interrupted = true;
    post_->changed.notify_all();
}

}  // namespace

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
    if (round > highest_tag_ / 8 - 1)
        throw Failure(Reason::argument, -1,
                      "MPI has no tags left for another world: this process has joined too many worlds");
    std::vector<Address> mine(size), peers(size);
    for (int peer = 0; peer < size; peer++) {
        mine[peer] = {job, rank, 8 * round};
        peers[peer] = {job, peer, 8 * round};
    }
    return std::make_unique<MpiEngine>(*this, rank, size, std::move(mine), std::move(peers));
}

}  // namespace terse::collectives::mpi

extern "C" __attribute__((visibility("default"))) const char* terse_mpi_interface() { return TERSE_MPI_INTERFACE; }

extern "C" __attribute__((visibility("default"))) terse::collectives::Mpi* terse_mpi() {
    static auto* process = new terse::collectives::mpi::Process;  // never destroyed: its thread may outlive every
                                                                  // static object
    return process;
}
