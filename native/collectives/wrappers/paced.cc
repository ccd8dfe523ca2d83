#include "wrappers/paced.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>

#include "wrappers/wrapper.h"
#include "terse/start_thread.h"

namespace terse::collectives {

Link::Link(double bits_per_second, double latency_seconds)
    : nanoseconds_per_byte_(8e9 / bits_per_second),
      latency_(std::chrono::nanoseconds(static_cast<int64_t>(std::ceil(latency_seconds * 1e9)))) {}

Clock::duration Link::time_of(size_t bytes) const {
    return std::chrono::nanoseconds(
        static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * nanoseconds_per_byte_)));
}

Clock::time_point Link::send(size_t bytes) {
    std::lock_guard lock(mutex_);
    out_ = std::max(out_, Clock::now()) + time_of(bytes);
    return out_ + latency_;
}

Clock::time_point Link::send_first(size_t bytes) {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    out_ = std::max(out_, now) + time_of(bytes);
    first_ = std::max(first_, now) + time_of(bytes);
    return first_ + latency_;
}

Clock::time_point Link::receive(size_t bytes, Clock::time_point posted) {
    std::lock_guard lock(mutex_);
    in_ = std::max(in_, posted) + time_of(bytes);
    return in_;
}

namespace {

constexpr size_t packet_bytes = 1448;  // of TCP, on Ethernet

struct Departure {
    int peer;
    uint32_t slot;
    const void* data;
    size_t bytes;
    Clock::time_point due;
    enum { waiting, leaving, gone } state = waiting;
    std::unique_ptr<Transfer> transfer = {};  // of the engine below, in state `gone`
    std::exception_ptr refused = {};
};

class Paced final : public Wrapper {
public:
    Paced(std::unique_ptr<Engine> engine, std::shared_ptr<Link> link)
        : Wrapper(std::move(engine)), link_(std::move(link)), thread_(start_thread([this] { run(); })) {}
    ~Paced() override { stop(); }

    bool waits_for_room() const override { return false; }  // the link's thread hands sends on
    bool is_far(int peer) const override { return link_->is_far() || engine_->is_far(peer); }

    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override;
    std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) override;

    void abort() noexcept override {
        {
            std::lock_guard lock(mutex_);
            aborted_ = true;
            changed_.notify_all();
        }
        engine_->abort();
    }
    void release() noexcept override {
        stop();
        engine_->release();
    }

private:
    friend class PacedSend;
    friend class PacedReceive;

    void stop() noexcept {
        {
            std::lock_guard lock(mutex_);
            ending_ = true;
            due_.notify_all();
        }
        if (thread_.joinable()) thread_.join();
    }

    // Passes departures to the engine below when they are due.
    void run() {
        pthread_setname_np(pthread_self(), "terse-link");
        prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; the default of 50 000 is half the time of a small message at 1
                                      // Gbit/s
        std::unique_lock lock(mutex_);
        while (!ending_) {
            if (queue_.empty()) {
                due_.wait(lock);
                continue;
            }
            const std::shared_ptr<Departure> first = queue_.front();
            if (Clock::now() < first->due) {
                due_.wait_until(lock, first->due);
                continue;
            }
            queue_.pop_front();
            first->state = Departure::leaving;
            lock.unlock();
            try {
                first->transfer = engine_->send(first->peer, first->slot, first->data, first->bytes);
            } catch (...) {
                first->refused = std::current_exception();
            }
            lock.lock();
            first->state = Departure::gone;
            changed_.notify_all();
        }
    }

    const std::shared_ptr<Link> link_;
    std::mutex mutex_;
    std::condition_variable due_, changed_;         // for this engine's thread; for waiting transfers
    std::deque<std::shared_ptr<Departure>> queue_;  // by the time when they are due
    bool aborted_ = false, ending_ = false;
    std::thread thread_;  // last: it uses all of the above
};

class PacedSend final : public Transfer {
public:
    PacedSend(Paced& paced, std::shared_ptr<Departure> departure) : paced_(paced), departure_(std::move(departure)) {}

    ~PacedSend() override {
        std::unique_lock lock(paced_.mutex_);
        std::erase(paced_.queue_, departure_);
        paced_.changed_.wait(lock, [&] { return departure_->state != Departure::leaving; });
        lock.unlock();
        departure_->transfer.reset();
    }

    void wait(Clock::time_point deadline) override {
        {
            std::unique_lock lock(paced_.mutex_);
            const auto over = [&] { return departure_->state == Departure::gone || paced_.aborted_; };
            if (!paced_.changed_.wait_until(lock, deadline, over))
                throw Failure(Reason::timeout, departure_->peer,
                              "the emulated link did not carry the message to rank " +
                                  std::to_string(departure_->peer) +
                                  " in time; raise timeoutSeconds or the link's rate");
            if (departure_->state != Departure::gone) throw Failure(Reason::aborted, -1, "aborted");
        }
        if (departure_->refused) std::rethrow_exception(departure_->refused);
        departure_->transfer->wait(deadline);
    }

private:
    Paced& paced_;
    const std::shared_ptr<Departure> departure_;
};

class PacedReceive final : public Transfer {
public:
    PacedReceive(Paced& paced, std::unique_ptr<Transfer> transfer, size_t bytes)
        : paced_(paced), transfer_(std::move(transfer)), bytes_(bytes) {}

    void wait(Clock::time_point deadline) override {
        transfer_->wait(deadline);
        const auto in = paced_.link_->receive(bytes_, posted_);
        std::unique_lock lock(paced_.mutex_);
        paced_.changed_.wait_until(lock, in, [&] { return paced_.aborted_; });
        if (paced_.aborted_) throw Failure(Reason::aborted, -1, "aborted");
    }

private:
    Paced& paced_;
    const std::unique_ptr<Transfer> transfer_;
    const size_t bytes_;
    const Clock::time_point posted_ = Clock::now();
};

std::unique_ptr<Transfer> Paced::send(int peer, uint32_t slot, const void* data, size_t bytes) {
    std::lock_guard lock(mutex_);
    const bool alone = std::ranges::none_of(queue_, [&](const auto& earlier) { return earlier->peer == peer; });
    const auto due = bytes <= packet_bytes && alone ? link_->send_first(bytes) : link_->send(bytes);
    auto departure = std::make_shared<Departure>(Departure{peer, slot, data, bytes, due});
    const auto place = std::ranges::upper_bound(queue_, due, {}, [](const auto& each) { return each->due; });
    if (place == queue_.begin()) due_.notify_all();
    queue_.insert(place, departure);
    return std::make_unique<PacedSend>(*this, std::move(departure));
}

std::unique_ptr<Transfer> Paced::recv(int peer, uint32_t slot, void* data, size_t room) {
    auto transfer = engine_->recv(peer, slot, data, room);
    if (!is_payload(slot)) return transfer;
    return std::make_unique<PacedReceive>(*this, std::move(transfer), room);
}

}  // namespace

std::unique_ptr<Engine> make_paced(std::unique_ptr<Engine> engine, std::shared_ptr<Link> link) {
    return std::make_unique<Paced>(std::move(engine), std::move(link));
}

}  // namespace terse::collectives
