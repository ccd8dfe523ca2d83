#include "engines/loopback/loopback.h"

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

struct Queue {  // unmatched posts of one (source, destination, slot); at least one of the two is empty
    std::deque<std::shared_ptr<Post>> sends, recvs;
};

struct Hub {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::tuple<int, int, uint32_t>, Queue> queues;
    std::vector<char> aborted;
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
        const auto over = [&] { return post_->state == Post::done || hub_->aborted[rank_] || interrupted_; };
        if (!hub_->changed.wait_until(lock, deadline, over)) throw timed_out(peer_);
        if (post_->state == Post::done) return;
        interrupted_ = false;
        throw Failure(Reason::aborted, -1, "aborted");
    }

    void interrupt() noexcept override {
        std::lock_guard lock(hub_->mutex);
        interrupted_ = true;
        hub_->changed.notify_all();
    }

private:
    std::shared_ptr<Hub> hub_;
    Queue& queue_;
    std::shared_ptr<Post> post_;
    int rank_, peer_;
    bool interrupted_ = false;
};

class Loopback final : public Engine {
public:
    Loopback(std::shared_ptr<Hub> hub, int rank, int size) : Engine(rank, size), hub_(std::move(hub)) {}

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

private:
    std::unique_ptr<Transfer> post(std::tuple<int, int, uint32_t> key, std::shared_ptr<Post> mine, int peer,
                                   bool sends) {
        std::unique_lock lock(hub_->mutex);
        Queue& queue = hub_->queues[key];  // std::map never moves it
        auto& others = sends ? queue.recvs : queue.sends;
        if (others.empty()) {
            (sends ? queue.sends : queue.recvs).push_back(mine);
        } else {
            const auto other = others.front();
            others.pop_front();
            const Post &from = sends ? *mine : *other, &into = sends ? *other : *mine;
            if (from.bytes > into.bytes)
                throw Failure(Reason::mismatch, peer,
                              sends ? "rank " + std::to_string(peer) + " receives less than this rank sends"
                                    : "rank " + std::to_string(peer) + " sends more than this rank receives");
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
};

}  // namespace

std::vector<std::unique_ptr<Engine>> make_loopback(int size) {
    auto hub = std::make_shared<Hub>();
    hub->aborted.resize(size);
    std::vector<std::unique_ptr<Engine>> engines;
    for (int rank = 0; rank < size; rank++) engines.push_back(std::make_unique<Loopback>(hub, rank, size));
    return engines;
}

}  // namespace terse::collectives
