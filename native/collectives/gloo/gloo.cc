// Gloo's pairs and unbound buffers, and nothing above them: its own collectives abort the process when sizes differ.
//
// What this file answers for (Gloo of 2022-05, Debian 12):
//  - a transfer that is half done when its connection breaks is woken by nobody, only what has not begun: so a thread waits for
//    receives that never begin, and wakes (abortWaitSend, abortWaitRecv) what was under way with the same peer;
//  - a connection on which nothing arrives any more, not even the news of its end, is never given up: the kernel is asked to;
//  - closing a pair does not wake its waiters either, so abort comes first;
//  - a timeout inside Gloo closes all pairs, and so ends the communicator as any error does;
//  - a connection that is reset before Gloo's thread has accepted it ends the process (getpeername fails on that thread), so
//    until every rank is connected nothing is closed hard, only with a FIN;
//  - while somebody sends on a connection that has something to read, Gloo's thread asks for its lock again and again, and a sender
//    that has lost its processor to it waits 3 ms to let go: so that thread takes no processor from anybody when it wakes up;
//  - bytes that no rank sends end the process too, and nothing can be done about it from here but to say so in a sentence.
#include "gloo.h"

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

#include "../congestion.h"

namespace terse::collectives {
namespace {

constexpr uint64_t slot_prefix = 0x54ull << 56;  // Gloo's own collectives use 0x01 to 0x08
constexpr uint64_t watch_slot = slot_prefix | 0xff;  // nothing is ever sent there

// What arrived before the connection broke is taken first; and a peer that died is named by the rendezvous meanwhile.
constexpr auto grace = std::chrono::milliseconds(100);

std::chrono::milliseconds until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());  // not before it: that would not be a timeout
    return std::clamp(left, std::chrono::milliseconds(1), std::chrono::milliseconds(std::chrono::hours(24 * 30)));
}

// "[/build/…/pair.cc:598] Connection closed by peer [10.0.0.2]:4711" → from "Connection" on.
std::string without_source_line(const std::string& what) {
    const size_t end = what.rfind('[', 0) == 0 ? what.find("] ") : std::string::npos;
    return end == std::string::npos ? what : what.substr(end + 2);
}

// Exceptions that nobody caught come from Gloo's own thread: ours catch all of theirs. It holds locks that the others would wait
// for, so the process cannot go on, but it ends with a sentence and an exit code; the rendezvous names this rank to the others.
std::terminate_handler terminate_otherwise;
[[noreturn]] void terminate_with_sentence() {
    const auto end = [](const char* cause) {
        const std::string sentence = "terse: a data connection brought what no rank sends, or was reset before it began (" + without_source_line(cause) +
                                     "), and Gloo cannot go on: this process ends. See whether another program reaches the ports of this rank (SECURITY.md).\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
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
    if (terminate_otherwise) terminate_otherwise();
    std::abort();
}

// A socket's end of a connection, or what Gloo's address bytes begin with; to be compared.
std::string place_of(const sockaddr_storage& at) {
    if (at.ss_family == AF_INET) {
        const auto& in = reinterpret_cast<const sockaddr_in&>(at);
        return std::string(reinterpret_cast<const char*>(&in.sin_addr), sizeof in.sin_addr) + std::to_string(in.sin_port);
    }
    const auto& in = reinterpret_cast<const sockaddr_in6&>(at);
    return std::string(reinterpret_cast<const char*>(&in.sin6_addr), sizeof in.sin6_addr) + std::to_string(in.sin6_port);
}
std::string place_of(const std::string& address) {
    sockaddr_storage at{};
    std::memcpy(&at, address.data(), std::min(sizeof at, address.size()));
    return place_of(at);
}

// The kernel ends a connection whose other side has acknowledged nothing for so long, whether this side sends or only waits. A
// little earlier than the rendezvous would call that rank lost: all of it, with the question of who is to blame, takes no longer.
void give_up_after(int fd, Clock::duration silence) {
    const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(silence).count() * 4 / 5;
    const int milliseconds = static_cast<int>(std::clamp<int64_t>(most, 4000, 1 << 30));
    const int on = 1, idle = milliseconds / 2000, interval = std::max(1, milliseconds / 10000);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

// While it lives, threads that this one starts let whoever is at work go on when they wake up.
class Deferential {
public:
    Deferential() {
        if (pthread_getschedparam(pthread_self(), &policy_, &priority_) == 0 && policy_ == SCHED_OTHER) set(SCHED_BATCH);
    }
    ~Deferential() {
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
    void abort() {
        sends_ ? buffer_->abortWaitSend() : buffer_->abortWaitRecv();
    }
    int peer() const { return peer_; }

private:
    Gloo& engine_;
    const int peer_;
    const bool sends_;
    std::string broken_;  // the pair was dead before this transfer began
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class Gloo final : public MeetingEngine {
public:
    Gloo(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration silence)
        : MeetingEngine(rank, size), silence_(silence) {
        static const bool once = (terminate_otherwise = std::set_terminate(terminate_with_sentence), true);
        static_cast<void>(once);
        gloo::transport::tcp::attr attr;
        attr.hostname = address;
        const Deferential thread;
        device_ = gloo::transport::tcp::CreateDevice(attr);
        context_ = device_->createContext(rank, size);
        // A pair waits five times the context's timeout for its connection.
        context_->setTimeout(std::max(std::chrono::duration_cast<std::chrono::milliseconds>(connect_timeout) / 5, std::chrono::milliseconds(1)));
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
            if (!cause.empty()) throw Failure(Reason::transport, peer, "no connection to rank " + std::to_string(peer) + " (" + cause + "); see whether the address that it told, its TERSE_ADDRESS, is reached from here");
        }
        settle();
        return true;
    }

    void established() override {
        std::lock_guard lock(mutex_);
        established_ = true;
        if (!aborted_) watcher_ = std::thread([this] { watch(); });
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
        if (canary_) canary_->abortWaitRecv();
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
        context_.reset();  // before the device, whose thread serves it
        device_.reset();
        for (int fd : woken_) ::close(fd);
        woken_.clear();
    }

private:
    friend class GlooTransfer;

    bool aborted() {
        std::lock_guard lock(mutex_);
        return aborted_;
    }

    // Why the connection to this peer is gone, or nothing.
    std::string broken(int peer) {
        std::lock_guard lock(mutex_);
        const auto found = broken_.find(peer);
        return found == broken_.end() ? std::string() : found->second;
    }

    // A receive that never begins is woken when its connection breaks, and posting one says which connection that was.
    void watch() {
        pthread_setname_np(pthread_self(), "terse-watch");
        char nothing;
        std::unique_lock lock(mutex_);
        while (!aborted_) {
            const auto canary = context_->createUnboundBuffer(&nothing, sizeof nothing);
            std::vector<int> lost;
            for (int peer = 0; peer < size; peer++) {
                if (peer == rank || broken_.contains(peer)) continue;
                try {
                    canary->recv(peer, watch_slot, 0, sizeof nothing);
                } catch (const std::exception& error) {
                    broken_[peer] = without_source_line(error.what());
                    lost.push_back(peer);
                }
            }
            if (!lost.empty()) {
                changed_.wait_for(lock, grace, [&] { return aborted_; });
                for (GlooTransfer* transfer : transfers_)
                    if (std::ranges::find(lost, transfer->peer()) != lost.end()) transfer->abort();
                if (aborted_) return;
            }
            if (broken_.size() == static_cast<size_t>(size - 1)) return;
            canary_ = canary.get();
            lock.unlock();
            try {
                canary->waitRecv(std::chrono::hours(24 * 365));
            } catch (const std::exception&) {
                // Which connection it was, the next round finds out.
            }
            lock.lock();
            canary_ = nullptr;
        }
    }

    // Gloo does not tell its sockets; they are those between the addresses that the two sides told each other.
    void settle() const noexcept {
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
            if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0 || (local.ss_family != AF_INET && local.ss_family != AF_INET6)) continue;
            if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &remote_size) != 0) continue;
            if (!here.contains(place_of(local)) && !there.contains(place_of(remote))) continue;
            give_up_after(fd, silence_);
            set_control(fd, beyond_machine(fd, control_of(fd)));  // late, but what paces then goes by reno's rate
        }
    }

    void close(int peer) noexcept {
        try {
            context_->getPair(peer)->close();
        } catch (const std::exception&) {
            // Closed already, or on its way.
        }
    }

    // Ends the wait of connect(). Where this rank listens for the peer, a connection from here serves as well as the peer's own;
    // where it calls the peer and gets no answer, there is no connection yet that a hard close could reset.
    void wake(int peer) noexcept {
        sockaddr_storage here{};
        std::memcpy(&here, addresses_[peer].data(), std::min(sizeof here, addresses_[peer].size()));
        const int fd = socket(here.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const bool listens = fd >= 0 && (::connect(fd, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0 || errno == EINPROGRESS);
        if (fd >= 0) woken_.push_back(fd);
        if (!listens) close(peer);
    }

    std::vector<std::string> addresses_, peers_;
    const Clock::duration silence_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<GlooTransfer*> transfers_;
    std::map<int, std::string> broken_;  // peers whose connection is gone, and why
    gloo::transport::UnboundBuffer* canary_ = nullptr;
    std::thread watcher_;
    std::vector<int> woken_;
    int connecting_ = -1;
    bool aborted_ = false, established_ = false;
    std::shared_ptr<gloo::transport::Device> device_;
    std::shared_ptr<gloo::transport::Context> context_;
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
    if (Clock::now() >= deadline) throw Failure(Reason::timeout, peer_, "rank " + std::to_string(peer_) + " did not come in time; see what it does, or allow more (timeoutSeconds)");
    throw Failure(Reason::transport, peer_, "the connection to rank " + std::to_string(peer_) + " ended (" + cause + ")");
}

}  // namespace

std::unique_ptr<MeetingEngine> make_gloo(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration silence) {
    return std::make_unique<Gloo>(rank, size, address, connect_timeout, silence);
}

}  // namespace terse::collectives
