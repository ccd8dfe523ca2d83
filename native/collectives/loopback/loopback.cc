#include "loopback.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

namespace terse::collectives {
namespace {

struct Post {
    const void* from;
    void* into;
    size_t bytes;
    enum { waiting, copying, done } state = waiting;
};

struct Queue {  // of one (source, destination, slot); at most one of the two is not empty
    std::deque<std::shared_ptr<Post>> sends, recvs;
};

struct Hub {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::tuple<int, int, uint32_t>, Queue> queues;
    std::vector<char> aborted;
    int lost = -1;
};

class LoopbackTransfer final : public Transfer {
public:
    LoopbackTransfer(std::shared_ptr<Hub> hub, Queue& queue, std::shared_ptr<Post> post, int rank, int peer)
        : hub_(std::move(hub)), queue_(queue), post_(std::move(post)), rank_(rank), peer_(peer) {}

    ~LoopbackTransfer() override {
        std::unique_lock lock(hub_->mutex);
        std::erase(queue_.sends, post_);
        std::erase(queue_.recvs, post_);
        hub_->changed.wait(lock, [&] { return post_->state != Post::copying; });
    }

    void wait(Clock::time_point deadline) override {
        std::unique_lock lock(hub_->mutex);
        const auto over = [&] { return post_->state == Post::done || hub_->aborted[rank_] || hub_->lost >= 0; };
        if (!hub_->changed.wait_until(lock, deadline, over))
            throw Failure(Reason::timeout, peer_, "rank " + std::to_string(peer_) + " did not come in time");
        if (post_->state == Post::done) return;
        if (hub_->lost >= 0) throw Failure(Reason::lost, hub_->lost, "rank " + std::to_string(hub_->lost) + " is lost");
        throw Failure(Reason::aborted, -1, "aborted");
    }

private:
    std::shared_ptr<Hub> hub_;
    Queue& queue_;
    std::shared_ptr<Post> post_;
    int rank_, peer_;
};

class Loopback final : public Engine {
public:
    Loopback(std::shared_ptr<Hub> hub, LoopbackFaults faults, int rank, int size) : Engine(rank, size), hub_(std::move(hub)), faults_(std::move(faults)) {}

    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override {
        return post({rank, peer, slot}, std::make_shared<Post>(Post{data, nullptr, bytes}), peer, true);
    }
    std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) override {
        return post({peer, rank, slot}, std::make_shared<Post>(Post{nullptr, data, room}), peer, false);
    }

    void abort() noexcept override {
        std::lock_guard lock(hub_->mutex);
        hub_->aborted[rank] = true;
        hub_->changed.notify_all();
    }

    void before(uint32_t sequence) override {
        if (!faults_.delay_ms.empty()) {
            std::unique_lock lock(hub_->mutex);
            const auto delay = std::chrono::duration<double, std::milli>(faults_.delay_ms[rank]);
            hub_->changed.wait_for(lock, delay, [&] { return hub_->aborted[rank]; });
        }
        if (rank == faults_.lost_rank && sequence == faults_.lost_at) {
            std::lock_guard lock(hub_->mutex);
            hub_->lost = rank;
            hub_->changed.notify_all();
            throw Failure(Reason::lost, rank, "this rank was told to vanish");
        }
    }

private:
    std::unique_ptr<Transfer> post(std::tuple<int, int, uint32_t> key, std::shared_ptr<Post> mine, int peer, bool sends) {
        std::unique_lock lock(hub_->mutex);
        Queue& queue = hub_->queues[key];  // stays where it is: std::map
        auto& others = sends ? queue.recvs : queue.sends;
        if (others.empty()) {
            (sends ? queue.sends : queue.recvs).push_back(mine);
        } else {
            const auto other = others.front();
            others.pop_front();
            const Post &from = sends ? *mine : *other, &into = sends ? *other : *mine;
            if (from.bytes > into.bytes) throw Failure(Reason::mismatch, peer, "a message is longer than the room for it");
            other->state = mine->state = Post::copying;
            lock.unlock();
            std::memcpy(into.into, from.from, from.bytes);
            lock.lock();
            other->state = mine->state = Post::done;
            hub_->changed.notify_all();
        }
        lock.unlock();
        return std::make_unique<LoopbackTransfer>(hub_, queue, std::move(mine), rank, peer);
    }

    std::shared_ptr<Hub> hub_;
    const LoopbackFaults faults_;
};

}  // namespace

std::vector<std::unique_ptr<Engine>> make_loopback(int size, LoopbackFaults faults) {
    auto hub = std::make_shared<Hub>();
    hub->aborted.resize(size);
    std::vector<std::unique_ptr<Engine>> engines;
    for (int rank = 0; rank < size; rank++) engines.push_back(std::make_unique<Loopback>(hub, faults, rank, size));
    return engines;
}

}  // namespace terse::collectives
