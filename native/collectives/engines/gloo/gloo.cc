// Uses Gloo's pairs and unbound buffers only: Gloo's own collectives abort the process when sizes differ.
//
// Faults of Gloo (2022-05, Debian 12) that this file works around:
//  - When a connection breaks, Gloo wakes transfers that have not begun, but not one that is half done. So a watcher
//    thread waits for receives that never begin, and wakes (abortWaitSend, abortWaitRecv) the transfers with the same
//    peer.
//  - Gloo never gives up a connection on which nothing arrives, not even its end. So the kernel is told to.
//  - Closing a pair does not wake its waiters. So abort comes first.
//  - A timeout inside Gloo closes all pairs. So it ends the communicator like any other failure.
//  - A connection that is reset before Gloo's thread has accepted it ends the process (getpeername fails on that
//    thread). So until every rank is connected, connections are closed with a FIN only.
//  - While a thread sends on a connection that has data to read, Gloo's thread polls its lock, and a sender that loses
//    its processor to that thread holds the lock for 3 ms. So Gloo's thread runs as SCHED_BATCH, which preempts no
//    other thread.
//  - A call that fails is not made again. So a pair whose call met an outage is replaced by a new one.
//  - Bytes that no rank sends end the process. Here only the error message is better.
#include "engines/gloo/gloo.h"

#include <gloo/common/error.h>
#include <gloo/common/logging.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "engines/congestion_control.h"
#include "engines/outage.h"
#include "terse/start_thread.h"

namespace terse::collectives {
namespace {

constexpr uint64_t slot_prefix = 0x54ull << 56;      // Gloo's own collectives use 0x01 to 0x08
constexpr uint64_t watch_slot = slot_prefix | 0xff;  // no rank sends on it

// After a connection breaks: time to take what arrived before, and for the rendezvous to name the peer that died.
constexpr auto grace_period = std::chrono::milliseconds(100);

// At least what is left until the deadline.
std::chrono::milliseconds until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    return std::clamp(left, std::chrono::milliseconds(1), std::chrono::milliseconds(std::chrono::hours(24 * 30)));
}

// "[/build/…/pair.cc:598] Connection closed by peer [10.0.0.2]:4711" → "Connection closed by …"
std::string without_source_line(const std::string& what) {
    const size_t end = what.rfind('[', 0) == 0 ? what.find("] ") : std::string::npos;
    return end == std::string::npos ? what : what.substr(end + 2);
}

// Uncaught exceptions of Gloo come from its own thread. That thread holds locks that other threads need, so the process
// must end. It ends with a message and an exit code, and the rendezvous names this rank to the others.
std::terminate_handler previous_terminate_handler;
[[noreturn]] void terminate_with_message() {
    const auto end = [](const char* cause) {
        const std::string message =
            "terse: a data connection received bytes that no rank sends, or was reset before it began (" +
            without_source_line(cause) +
            "), and Gloo cannot continue: this process ends. Check whether another program can reach the ports of this "
            "rank (SECURITY.md).\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
        _exit(70);  // EX_SOFTWARE
    };
    try {
        if (std::current_exception()) std::rethrow_exception(std::current_exception());
    } catch (const gloo::EnforceNotMet& error) {
        end(error.what());
    } catch (const gloo::Exception& error) {
        end(error.what());
    } catch (...) {
    }
    if (previous_terminate_handler) previous_terminate_handler();
    std::abort();
}

// One end of a connection as a string to compare: of a socket, or of the sockaddr with which Gloo's address bytes
// begin.
std::string place_of(const sockaddr_storage& at) {
    if (at.ss_family == AF_INET) {
        const auto& in = reinterpret_cast<const sockaddr_in&>(at);
        return std::string(reinterpret_cast<const char*>(&in.sin_addr), sizeof in.sin_addr) +
               std::to_string(in.sin_port);
    }
    const auto& in = reinterpret_cast<const sockaddr_in6&>(at);
    return std::string(reinterpret_cast<const char*>(&in.sin6_addr), sizeof in.sin6_addr) +
           std::to_string(in.sin6_port);
}
std::string place_of(const std::string& address) {
    sockaddr_storage at{};
    std::memcpy(&at, address.data(), std::min(sizeof at, address.size()));
    return place_of(at);
}

// Whether Gloo says at the end of its sentence that a link is down.
bool is_outage(const std::string& cause) {
    return std::ranges::any_of(outage_errors, [&](int error) { return cause.ends_with(std::strerror(error)); });
}

// Lets the kernel end a connection whose other side has acknowledged nothing for so long, whether this side sends or
// waits.
void limit_silence(int fd, Clock::duration outage) {
    const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(silence_limit_of(outage)).count();
    const int milliseconds = static_cast<int>(std::min<int64_t>(most, 1 << 30));
    survive_outage(fd, outage);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

// While it exists, this thread starts threads as SCHED_BATCH: when they wake up, they preempt no other thread.
class BatchScheduling {
public:
    BatchScheduling() {
        if (pthread_getschedparam(pthread_self(), &policy_, &priority_) == 0 && policy_ == SCHED_OTHER)
            set(SCHED_BATCH);
    }
    ~BatchScheduling() {
        if (policy_ == SCHED_OTHER) set(SCHED_OTHER);
    }

private:
    void set(int policy) noexcept { pthread_setschedparam(pthread_self(), policy, &priority_); }

    int policy_ = -1;
    sched_param priority_{};
};

class Gloo;

class GlooTransfer final : public Transfer {
public:
    GlooTransfer(Gloo& engine, int peer, uint32_t slot, void* data, size_t bytes, bool sends);
    ~GlooTransfer() override;
    void wait(Clock::time_point deadline) override;
    void interrupt() noexcept override { buffer_->abortWaitRecv(); }
    void abort() { sends_ ? buffer_->abortWaitSend() : buffer_->abortWaitRecv(); }
    int peer() const { return peer_; }

private:
    Gloo& engine_;
    const int peer_;
    const bool sends_;
    std::string broken_;  // the connection ended before this transfer began
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class Gloo final : public RendezvousEngine {
public:
    Gloo(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration outage)
        : RendezvousEngine(rank, size), outage_(outage) {
        static const bool once = (previous_terminate_handler = std::set_terminate(terminate_with_message), true);
        static_cast<void>(once);
        gloo::transport::tcp::attr attr;
        attr.hostname = address;
        const BatchScheduling scheduling;
        device_ = gloo::transport::tcp::CreateDevice(attr);
        context_ = device_->createContext(rank, size);
        // A pair waits for its connection five times as long as the context's timeout.
        context_->setTimeout(std::max(std::chrono::duration_cast<std::chrono::milliseconds>(connect_timeout) / 5,
                                      std::chrono::milliseconds(1)));
        for (int peer = 0; peer < size; peer++) {
            const auto bytes = peer == rank ? std::vector<char>() : context_->createPair(peer)->address().bytes();
            addresses_.emplace_back(bytes.begin(), bytes.end());
        }
    }
    ~Gloo() override { release(); }

    std::vector<std::string> addresses() const override { return addresses_; }
    void set_peers(std::vector<std::string> addresses) override { peers_ = std::move(addresses); }

    bool connect(Clock::time_point) override {
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank) continue;
            const auto outage_ends = Clock::now() + outage_;
            std::string cause = connect_to(peer);
            while (is_outage(cause) && Clock::now() < outage_ends) {
                {
                    std::unique_lock lock(mutex_);
                    changed_.wait_for(lock, retry_interval, [&] { return aborted_; });
                    // Of two machines the one with the higher address calls, so the new pair calls too: its new port
                    // makes no difference. Gloo's thread may still use the old one.
                    retired_.push_back(std::move(context_->getPair(peer)));
                    context_->createPair(peer);
                }
                cause = connect_to(peer);
            }
            if (!cause.empty())
                throw Failure(Reason::transport, peer,
                              "no connection to rank " + std::to_string(peer) + " (" + cause + ")" + how_to_connect);
        }
        configure_sockets();
        return true;
    }

    void established() override {
        std::lock_guard lock(mutex_);
        established_ = true;
        if (!aborted_) watcher_ = start_thread([this] { watch(); });
    }

    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override {
        return std::make_unique<GlooTransfer>(*this, peer, slot, const_cast<void*>(data), bytes, true);
    }
    std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) override {
        return std::make_unique<GlooTransfer>(*this, peer, slot, data, room, false);
    }

    bool waits_for_room() const override { return true; }

    void abort() noexcept override {
        std::lock_guard lock(mutex_);
        aborted_ = true;
        for (GlooTransfer* transfer : transfers_) transfer->abort();
        if (sentinel_) sentinel_->abortWaitRecv();
        changed_.notify_all();
        if (connecting_ >= 0) wake(connecting_);
    }

    void disconnect() noexcept override {
        std::lock_guard lock(mutex_);
        if (!context_ || !established_) return;
        for (int peer = 0; peer < size; peer++)
            if (peer != rank) close(peer);
    }

    void release() noexcept override {
        abort();
        if (watcher_.joinable()) watcher_.join();
        std::lock_guard lock(mutex_);
        retired_.clear();
        context_.reset();  // before the device, whose thread uses it
        device_.reset();
        for (int fd : wake_fds_) ::close(fd);
        wake_fds_.clear();
    }

private:
    friend class GlooTransfer;

    // Why there is no connection to this peer, or "".
    std::string connect_to(int peer) {
        {
            std::lock_guard lock(mutex_);
            if (aborted_) throw Failure(Reason::aborted, -1, "aborted");
            connecting_ = peer;
        }
        std::string cause;
        try {
            context_->getPair(peer)->connect({peers_[peer].begin(), peers_[peer].end()});
        } catch (const std::exception& error) {
            cause = without_source_line(error.what());
        }
        std::lock_guard lock(mutex_);
        connecting_ = -1;
        if (aborted_) throw Failure(Reason::aborted, -1, "aborted");
        return cause;
    }

    bool aborted() {
        std::lock_guard lock(mutex_);
        return aborted_;
    }

    // Why the connection to this peer ended, or "".
    std::string broken(int peer) {
        std::lock_guard lock(mutex_);
        const auto found = broken_.find(peer);
        return found == broken_.end() ? std::string() : found->second;
    }

    // Gloo wakes a receive that has not begun when its connection breaks. Posting such a receive again tells which
    // connection it was.
    void watch() {
        pthread_setname_np(pthread_self(), "terse-watch");
        char nothing;
        std::unique_lock lock(mutex_);
        while (!aborted_) {
            const auto sentinel = context_->createUnboundBuffer(&nothing, sizeof nothing);
            std::vector<int> lost;
            for (int peer = 0; peer < size; peer++) {
                if (peer == rank || broken_.contains(peer)) continue;
                try {
                    sentinel->recv(peer, watch_slot, 0, sizeof nothing);
                } catch (const std::exception& error) {
                    broken_[peer] = without_source_line(error.what());
                    lost.push_back(peer);
                }
            }
            if (!lost.empty()) {
                changed_.wait_for(lock, grace_period, [&] { return aborted_; });
                for (GlooTransfer* transfer : transfers_)
                    if (std::ranges::find(lost, transfer->peer()) != lost.end()) transfer->abort();
                if (aborted_) return;
            }
            if (broken_.size() == static_cast<size_t>(size - 1)) return;
            sentinel_ = sentinel.get();
            lock.unlock();
            try {
                sentinel->waitRecv(std::chrono::hours(24 * 365));
            } catch (const std::exception&) {
                // The next round finds out which connection it was.
            }
            lock.lock();
            sentinel_ = nullptr;
        }
    }

    // Gloo does not give its sockets, so this finds them by the addresses that the two sides have exchanged.
    void configure_sockets() const noexcept {
        std::set<std::string> here, there;
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank) continue;
            here.insert(place_of(addresses_[peer]));
            there.insert(place_of(peers_[peer]));
        }
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
            const int fd = std::atoi(entry.path().filename().c_str());
            sockaddr_storage local{}, remote{};
            socklen_t local_size = sizeof local, remote_size = sizeof remote;
            if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0 ||
                (local.ss_family != AF_INET && local.ss_family != AF_INET6))
                continue;
            if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &remote_size) != 0) continue;
            if (!here.contains(place_of(local)) && !there.contains(place_of(remote))) continue;
            limit_silence(fd, outage_);
            set_congestion_control(fd, congestion_control_for(fd, congestion_control_of(fd)));  // the connection
                                                                                                // already exists; bbr
                                                                                                // then starts with
                                                                                                // reno's rate
        }
    }

    void close(int peer) noexcept {
        try {
            context_->getPair(peer)->close();
        } catch (const std::exception&) {
            // It is closed already.
        }
    }

    // Ends the wait of connect(). If this rank listens for the peer, a connection from this process ends it as well as
    // the peer's would. If it calls the peer and gets no answer, closing the pair is safe: there is no connection yet
    // that could be reset.
    void wake(int peer) noexcept {
        sockaddr_storage here{};
        std::memcpy(&here, addresses_[peer].data(), std::min(sizeof here, addresses_[peer].size()));
        const int fd = socket(here.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const bool listens = fd >= 0 && (::connect(fd, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0 ||
                                         errno == EINPROGRESS);
        if (fd >= 0) wake_fds_.push_back(fd);
        if (!listens) close(peer);
    }

    std::vector<std::string> addresses_, peers_;
    const Clock::duration outage_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<GlooTransfer*> transfers_;
    std::map<int, std::string> broken_;  // peers whose connection has ended, and why
    gloo::transport::UnboundBuffer* sentinel_ = nullptr;
    std::thread watcher_;
    std::vector<int> wake_fds_;
    int connecting_ = -1;
    bool aborted_ = false, established_ = false;
    std::shared_ptr<gloo::transport::Device> device_;
    std::shared_ptr<gloo::transport::Context> context_;
    std::vector<std::unique_ptr<gloo::transport::Pair>> retired_;  // pairs whose call has failed
};

GlooTransfer::GlooTransfer(Gloo& engine, int peer, uint32_t slot, void* data, size_t bytes, bool sends)
    : engine_(engine), peer_(peer), sends_(sends), buffer_(engine.context_->createUnboundBuffer(data, bytes)) {
    {
        std::lock_guard lock(engine_.mutex_);
        engine_.transfers_.insert(this);
        if (engine_.aborted_) abort();
    }
    try {
        sends_ ? buffer_->send(peer, slot_prefix | slot, 0, bytes) : buffer_->recv(peer, slot_prefix | slot, 0, bytes);
    } catch (const std::exception& error) {
        broken_ = without_source_line(error.what());
    }
}

GlooTransfer::~GlooTransfer() {
    std::lock_guard lock(engine_.mutex_);
    engine_.transfers_.erase(this);
}

void GlooTransfer::wait(Clock::time_point deadline) {
    std::string cause = broken_;
    bool aborted = false;
    if (cause.empty()) {
        try {
            aborted = !(sends_ ? buffer_->waitSend(until(deadline)) : buffer_->waitRecv(until(deadline)));
        } catch (const std::exception& error) {
            cause = without_source_line(error.what());
        }
    }
    if (!aborted && cause.empty()) return;
    if (aborted && !engine_.aborted()) cause = engine_.broken(peer_);
    if (cause.empty() || engine_.aborted()) throw Failure(Reason::aborted, -1, "aborted");
    if (Clock::now() >= deadline) throw timed_out(peer_);
    throw Failure(Reason::transport, peer_,
                  "the connection to rank " + std::to_string(peer_) + " ended (" + cause + ")");
}

}  // namespace

std::unique_ptr<RendezvousEngine> make_gloo(int rank, int size, const std::string& address,
                                            Clock::duration connect_timeout, Clock::duration outage) {
    return std::make_unique<Gloo>(rank, size, address, connect_timeout, outage);
}
bool has_gloo() { return true; }

}  // namespace terse::collectives
