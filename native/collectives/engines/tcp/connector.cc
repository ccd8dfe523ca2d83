#include "engines/tcp/connector.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engines/outage.h"
#include "engines/tcp/transfer.h"

namespace terse::collectives::tcp {
namespace {

constexpr uint32_t hello_magic = 0x48535254;                  // "TRSH"
constexpr size_t most_unknown_callers = 256;                  // that have not proved who they are
constexpr int accepts_per_round = 64;                         // before the connections that exist have their turn
constexpr auto descriptor_timeout = std::chrono::seconds(2);  // if this process has no descriptor left

bool is_outage(int error) { return std::ranges::find(outage_errors, error) != std::end(outage_errors); }

}  // namespace

Connector::Connector(int rank, int size, const std::string& address, Clock::duration outage)
    : rank_(rank), size_(size), outage_(outage), here_(parse_address(address)) {
    listener_ = Descriptor(socket(here_.place.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    socklen_t length = here_.length();
    if (listener_) machine_default_ = congestion_control_of(listener_.get());
    if (listener_) set_congestion_control(listener_.get(), unpaced);  // accepted sockets inherit it
    if (!listener_ || bind(listener_.get(), here_.name(), length) != 0 || listen(listener_.get(), SOMAXCONN) != 0 ||
        getsockname(listener_.get(), here_.name(), &length) != 0)
        throw std::runtime_error(describe_errno(errno));
    mine_.resize(size, here_);
    for (Address& each : mine_)
        if (getrandom(each.secret, sizeof each.secret, 0) != sizeof each.secret)
            throw std::runtime_error(describe_errno(errno));
}

std::vector<std::string> Connector::addresses() const {
    std::vector<std::string> all;
    for (int peer = 0; peer < size_; peer++) all.push_back(peer == rank_ ? std::string() : mine_[peer].bytes());
    return all;
}

void Connector::set_peers(const std::vector<std::string>& addresses) {
    for (const std::string& bytes : addresses) peers_.push_back(Address::of(bytes));
}

void Connector::fail(int peer, const std::string& why) const {
    throw Failure(Reason::transport, peer, "no connection to rank " + std::to_string(peer) + " (" + why + ")");
}

void Connector::cannot_reach(int peer, const std::string& why) const {
    throw Failure(Reason::transport, peer,
                  "no connection to rank " + std::to_string(peer) + " (" + why + ")" +
                      (is_on_this_machine(peer) ? "" : how_to_connect));
}

void Connector::connect(Clock::time_point deadline, const WakeEvent& wake, const std::atomic<bool>& aborted,
                        const Connected& connected) {
    outage_ends_ = Clock::now() + outage_;
    std::deque<Attempt> attempts;
    std::vector<std::array<bool, channels>> done(size_);
    int missing = channels * (size_ - 1);
    for (int peer = 0; peer < rank_; peer++)
        for (int channel = 0; channel < channels; channel++) {
            attempts.emplace_back();
            attempts.back().peer = peer;
            attempts.back().channel = channel;
        }

    // Moves an attempt on. False if it is over, well or not.
    const auto advance = [&](Attempt& attempt) {
        if (attempt.peer >= 0 ? continue_dialing(attempt) : read_hello(attempt)) return true;
        if (!attempt.socket) return false;
        bool& is_done = done[attempt.peer][attempt.channel];
        if (!is_done) missing--;  // otherwise the peer calls again because its first call broke
        is_done = true;
        connected(std::move(attempt.socket), attempt.peer, attempt.channel);
        return false;
    };
    const auto is_unknown = [](const Attempt& each) { return each.peer < 0; };
    const auto unknown_callers = [&] { return std::ranges::count_if(attempts, is_unknown); };
    // Drops the oldest unknown callers.
    const auto keep_unknown = [&](ptrdiff_t most) {
        for (auto excess = unknown_callers() - most; excess > 0; excess--)
            attempts.erase(std::ranges::find_if(attempts, is_unknown));
    };

    std::vector<pollfd> polled;
    bool full = false;  // no descriptor is left for a caller, and there is no unknown caller to drop
    Clock::time_point full_since;
    while (missing > 0) {
        auto until = full ? std::min(deadline, Clock::now() + retry_interval) : deadline;
        polled = {wake.polled(), {full ? -1 : listener_.get(), POLLIN, 0}};
        for (Attempt& attempt : attempts) {
            if (!attempt.socket && attempt.retry_at <= Clock::now()) dial(attempt);
            if (!attempt.socket) until = std::min(until, attempt.retry_at);
            polled.push_back({attempt.socket.get(),
                              static_cast<short>(attempt.peer >= 0 && !attempt.hello_sent ? POLLOUT : POLLIN), 0});
        }
        poll(polled.data(), polled.size(), poll_timeout(until));
        if (aborted) throw Failure(Reason::aborted, -1, "aborted");
        for (size_t i = attempts.size(); i-- > 0;)
            if (polled[i + 2].revents != 0 && !advance(attempts[i])) attempts.erase(attempts.begin() + i);
        const bool has_callers = full || polled[1].revents != 0, was_full = full;
        full = false;
        for (int i = 0; has_callers && i < accepts_per_round; i++) {
            Address from;
            socklen_t length = sizeof from.place;
            Descriptor socket(accept4(listener_.get(), from.name(), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
                full = unknown_callers() == 0;
                keep_unknown(unknown_callers() / 2);
            }
            if (!socket) break;
            if (!same_machine(from, here_))
                set_congestion_control(socket.get(), congestion_control_for(socket.get(), machine_default_));
            attempts.emplace_back();
            attempts.back().socket = std::move(socket);
            if (!advance(attempts.back())) attempts.pop_back();
        }
        keep_unknown(most_unknown_callers);
        if (full && !was_full) full_since = Clock::now();
        // This rank reports that it has no descriptors before the others give up on it without a reason.
        const bool out_of_descriptors = full && Clock::now() - full_since >= descriptor_timeout;
        if (missing == 0 || (Clock::now() < deadline && !out_of_descriptors)) continue;
        int absent = 0;
        while (absent == rank_ || std::ranges::all_of(done[absent], std::identity())) absent++;
        if (full) fail(absent, describe_errno(EMFILE));
        if (absent > rank_) cannot_reach(absent, "it did not connect to " + text_of(here_) + " in time");
        std::string why = "no answer in time";
        for (const Attempt& attempt : attempts)
            if (attempt.peer == absent && !attempt.error.empty()) why = attempt.error;
        cannot_reach(absent, text_of(peers_[absent]) + ": " + why);
    }
    stop_listening();
}

void Connector::dial(Attempt& attempt) const {
    Address there = peers_[attempt.peer], from = here_;  // the call leaves by the interface that was chosen
    from.port() = 0;
    // The scope of a link-local address is this machine's own number of the link.
    if (there.place.ss_family == AF_INET6 && here_.place.ss_family == AF_INET6)
        reinterpret_cast<sockaddr_in6&>(there.place).sin6_scope_id = reinterpret_cast<const sockaddr_in6&>(here_.place)
                                                                         .sin6_scope_id;
    Descriptor called(socket(there.place.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (called) set_congestion_control(called.get(), unpaced);
    // The kernel chooses the port when it knows the destination, so one port serves connections to several of them.
    const int on = 1;
    if (called) setsockopt(called.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (!called || bind(called.get(), from.name(), from.length()) != 0) fail(attempt.peer, describe_errno(errno));
    attempt.hello_sent = false;
    if (::connect(called.get(), there.name(), there.length()) == 0 || errno == EINPROGRESS) {
        attempt.socket = std::move(called);
        return;
    }
    if (errno == EADDRNOTAVAIL) fail(attempt.peer, describe_errno(EADDRINUSE));
    if (!is_outage(errno) || Clock::now() >= outage_ends_)
        cannot_reach(attempt.peer, text_of(there) + ": " + describe_errno(errno));
    attempt.error = describe_errno(errno);
    attempt.retry_at = Clock::now() + retry_interval;
}

// The kernel has connected this rank's call, or the listener has answered. False when the connection is made. A call
// that breaks is made again: the listener may have had too many unknown callers.
bool Connector::continue_dialing(Attempt& attempt) const {
    const auto retry = [&](const std::string& error) {
        attempt.error = error;
        attempt.socket = Descriptor();
        attempt.retry_at = Clock::now() + retry_interval;
        return true;
    };
    const int fd = attempt.socket.get();
    if (!attempt.hello_sent) {
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
        // A listener that accepted one call and refuses the next has failed; the rendezvous will say why.
        const bool is_over = is_outage(error) && Clock::now() >= outage_ends_;
        if (!is_over && (error == ECONNRESET || is_outage(error) || (error != 0 && !attempt.error.empty())))
            return retry(describe_errno(error));
        if (error != 0) cannot_reach(attempt.peer, text_of(peers_[attempt.peer]) + ": " + describe_errno(error));
        if (!is_on_this_machine(attempt.peer)) set_congestion_control(fd, congestion_control_for(fd, machine_default_));
        const uint32_t words[3] = {hello_magic, static_cast<uint32_t>(rank_), static_cast<uint32_t>(attempt.channel)};
        uint8_t hello[hello_bytes];
        std::memcpy(hello, words, sizeof words);
        std::memcpy(hello + sizeof words, peers_[attempt.peer].secret, secret_bytes);
        if (::send(fd, hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello))
            return retry(describe_errno(errno));
        attempt.hello_sent = true;
        return true;
    }
    uint8_t answer;
    const ssize_t got = ::recv(fd, &answer, 1, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    return got == 1 ? false : retry(got == 0 ? "it closed the connection" : describe_errno(errno));
}

// Reads an unknown caller's hello. False when the caller is known, or dropped and then without a socket.
bool Connector::read_hello(Attempt& attempt) const {
    const ssize_t got = ::recv(attempt.socket.get(), attempt.hello + attempt.received, hello_bytes - attempt.received,
                               0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got > 0 && (attempt.received += got) < hello_bytes) return true;
    uint32_t words[3];
    std::memcpy(words, attempt.hello, sizeof words);
    const auto [magic, caller, channel] = std::to_array(words);
    const bool known = got > 0 && magic == hello_magic && caller < static_cast<uint32_t>(size_) &&
                       static_cast<int>(caller) > rank_ && channel < channels &&
                       same_secret(attempt.hello + sizeof words, mine_[caller].secret);
    const uint8_t welcome = 1;
    if (!known || ::send(attempt.socket.get(), &welcome, 1, MSG_NOSIGNAL) != 1) {
        attempt.socket = Descriptor();
        return false;
    }
    attempt.peer = static_cast<int>(caller);
    attempt.channel = static_cast<int>(channel);
    return false;
}

}  // namespace terse::collectives::tcp
