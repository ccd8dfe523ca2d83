// Three connections between two ranks: one for collectives, one for send and recv, and one on which nothing is ever said (below). On
// the first two, what one side sends on its two slots is one stream of bytes, and the other side posts receives in the same order (message.h): so a receiver just reads into the memory that is
// posted, and nothing is said on the wire beyond it. Only what goes on an even slot, whose length the receiver does not know, has its
// length before it, 4 bytes.
//
// No thread of its own: whoever waits for a transfer moves all transfers of its lane forward until that one is done. So bytes
// are read where they are used next, and no thread wakes another one for them.
//
// Connecting: the higher rank calls the lower one and says who it is, with the secret that this peer was told through the rendezvous.
// A stranger who connects is dropped, and costs nobody anything; a call that breaks before its answer is made again.
//
//   0        4      8      12                       28
//   | magic  | rank | lane | secret of the listener |       → the listener answers with one byte
//
// Silence: a rank may be late for hours, and then what is sent to it waits in full buffers, where the kernel cannot tell a late reader
// from a cut cable: its limits on unacknowledged data would end the connection. On the third connection nothing is ever under way, so
// the kernel's keepalive always runs there, and is answered by the kernel of the other machine. Who waits looks at it.
//
// A network may also lose one connection and keep the others. On a connection with data under way the kernel of the other machine says so of
// everything that comes, and when its reader is late it still answers when it is asked for room. Who waits looks whether this kernel
// has asked for so long, and has heard nothing. Where nothing is under way, the keepalive asks.
//
// And a device in between may answer for a machine that it passes nothing on to. A segment is whole before its sender begins with it, and
// then goes on until it has left: so whoever has a part of one, and then nothing more for long, waits for nobody who is late. Between
// segments nobody knows: a rank that passes on what others send may stop there.
#include "tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../congestion.h"

namespace terse::collectives {
namespace {

constexpr int lanes = 2, quiet = lanes;  // the connection of this number carries nothing
constexpr int connections = lanes + 1;
constexpr uint32_t hello_magic = 0x48535254;  // "TRSH"
constexpr size_t secret_bytes = 16, hello_bytes = 12 + secret_bytes;
constexpr size_t most_strangers = 256;       // connections that have not said who they are
constexpr int welcomes_at_once = 64;         // connections accepted before those that are here have their turn
constexpr auto redial = std::chrono::milliseconds(100);
constexpr auto full_patience = std::chrono::seconds(2);  // for a descriptor, where this process has none left
constexpr int patience_ms = 500;             // after so long without news, a wait looks whether the other machine is still there
constexpr auto patience = std::chrono::milliseconds(patience_ms);
constexpr int payload_patience = 3;           // how much longer half a segment is waited for than half a header
constexpr int rto_max_ms = 44, longest_ask_ms = 2000;  // TCP_RTO_MAX_MS, from Linux 6.15 on: the most between two times that the kernel asks
constexpr size_t turn_bytes = 256 << 10;     // what one connection may move before the next one's turn
constexpr size_t lazy_bytes = 128 << 10;    // a receive of as much is not woken for less

class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_;
};

// Ends a poll, from any thread. Rung for good when everything is over.
class Bell {
public:
    Bell() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (!event_) throw std::runtime_error("no file descriptor is left");
    }
    void ring() const noexcept {
        if (event_) eventfd_write(event_.get(), 1);
    }
    void remove() noexcept { event_ = Descriptor(); }  // nobody listens any more
    void answer() const noexcept {
        eventfd_t count;
        eventfd_read(event_.get(), &count);
    }
    pollfd ears() const { return {event_.get(), POLLIN, 0}; }

private:
    Descriptor event_;
};

// The kernel is always asked for any free port.
std::string words(int error) { return error == EADDRINUSE ? "no port is free; see net.ipv4.ip_local_port_range" : std::strerror(error); }

// Milliseconds to wait, for poll: not less than what is left, or it would not be a timeout.
int until(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

struct Address {
    sockaddr_storage place{};
    uint8_t secret[secret_bytes] = {};

    socklen_t length() const { return place.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
    const sockaddr* name() const { return reinterpret_cast<const sockaddr*>(&place); }
    in_port_t& port() { return place.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(place).sin6_port : reinterpret_cast<sockaddr_in&>(place).sin_port; }

    std::string bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
    static Address of(const std::string& bytes) {
        Address address;
        std::memcpy(static_cast<void*>(&address), bytes.data(), std::min(sizeof address, bytes.size()));
        return address;
    }
};

Address numeric(const std::string& text) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = getaddrinfo(text.c_str(), "0", &hints, &found)) throw std::runtime_error(gai_strerror(error));
    Address address;
    std::memcpy(&address.place, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return address;
}

bool same_machine(Address a, Address b) {
    a.port() = b.port() = 0;
    return a.length() == b.length() && std::memcmp(&a.place, &b.place, a.length()) == 0;
}

bool same_secret(const uint8_t* a, const uint8_t* b) {  // in constant time
    unsigned difference = 0;
    for (size_t i = 0; i < secret_bytes; i++) difference |= a[i] ^ b[i];
    return difference == 0;
}

// One send or receive, in its connection's queue until it is done.
struct Item {
    uint8_t* data;
    size_t bytes;       // to move; of a receive of unknown length, the room
    bool framed;        // its length goes before it
    uint8_t length[4];  // that length
    size_t moved = 0;   // of length and data together
    bool done = false;

    size_t before() const { return framed ? sizeof length : 0; }
};

class Tcp;
struct Pump;

// One direction of a connection: what is still to move, and why nothing moves any more.
struct Stream {
    int fd = -1, peer = -1;
    bool sends = false;
    Pump* pump = nullptr;
    std::deque<Item*> queue;
    std::string broken;
    size_t lazy = 1;  // SO_RCVLOWAT as it is set
    int quiet = -1;   // the connection that tells whether the other machine is there

    bool advance();
    void listen_for_life();
    bool look(Clock::time_point now, Clock::duration gone);
    bool wants() const { return !queue.empty() && broken.empty(); }

private:
    void look_for_answers(Clock::time_point now, Clock::duration gone);
    void look_for_progress(Clock::time_point now, Clock::duration gone);

    Clock::time_point looked_{};  // for the last time
    std::optional<Clock::time_point> asked_, halted_;  // since when, as far as has been seen: not answered; in the middle of an item
    uint64_t moved_ = 0, halted_at_ = 0;               // bytes so far; then

    ssize_t step(Item& item);
    bool announced(Item& item);
};

// The streams that one thread moves forward while it waits.
struct Pump {
    std::mutex mutex;
    Bell bell;
    std::vector<Stream*> streams;
    Clock::time_point looked{};
    bool waiting = false;  // its thread polls: what is added must be polled too
};

// Moves what can be moved now; whether anything was.
bool Stream::advance() {
    size_t budget = turn_bytes;
    bool any = false;
    while (wants() && budget > 0) {
        Item& item = *queue.front();
        const ssize_t moved = step(item);
        if (moved == 0) break;
        if (moved < 0) {
            broken = sends || moved == -1 ? words(errno) : "closed by the other side";
            break;
        }
        any = true;
        budget -= std::min(budget, static_cast<size_t>(moved));
        item.moved += moved;
        moved_ += moved;
        if (!sends && item.framed && item.moved == sizeof item.length && !announced(item)) break;
        if (item.moved == item.before() + item.bytes) {
            item.done = true;
            queue.pop_front();
        }
    }
    return any;
}

// Nothing came for a while.
void Stream::listen_for_life() {
    pollfd ends{quiet, 0, 0};
    if (poll(&ends, 1, 0) > 0 && (ends.revents & (POLLERR | POLLHUP))) broken = "nothing is heard from its machine any more";
}

// A wait has a look at its connections every so often; false if this one turns out to be broken. What an earlier wait has seen counts
// for nothing in this one.
bool Stream::look(Clock::time_point now, Clock::duration gone) {
    if (fd < 0 || !broken.empty()) return true;  // a rank that has closed its group is no reason to end this one
    if (now - looked_ > 3 * patience) {
        asked_.reset();
        halted_.reset();
    }
    looked_ = now;
    look_for_answers(now, gone);
    if (!sends && broken.empty()) look_for_progress(now, gone);
    return broken.empty();
}

void Stream::look_for_answers(Clock::time_point now, Clock::duration gone) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
    if (info.tcpi_unacked == 0 && info.tcpi_probes == 0) return asked_.reset();  // all has arrived, or the last question was answered
    if (!asked_) asked_ = now;
    if (now - std::max(*asked_, now - std::chrono::milliseconds(info.tcpi_last_ack_recv)) >= gone)
        broken = "what is sent over it is not answered any more";
}

// A header leaves in one piece. The rest of a segment may have to wait at its sender: for its thread, and for the way.
void Stream::look_for_progress(Clock::time_point now, Clock::duration gone) {
    const Item* item = queue.empty() ? nullptr : queue.front();
    if (!item || item->moved == 0) return halted_.reset();
    if (!halted_ || halted_at_ != moved_) halted_ = now;
    halted_at_ = moved_;
    if (now - *halted_ < (item->framed ? gone : payload_patience * gone)) return;
    broken = std::string("what it sends has stopped in the middle of a ") + (item->framed ? "header" : "message");
}

// The header's own length has arrived.
bool Stream::announced(Item& item) {
    uint32_t bytes;
    std::memcpy(&bytes, item.length, sizeof bytes);
    if (bytes <= item.bytes) {
        item.bytes = bytes;
        return true;
    }
    broken = "what it sends does not begin like a message";
    return false;
}

// Bytes moved, 0 when none can be, −1 with errno, −2 at the end of the stream.
ssize_t Stream::step(Item& item) {
    const size_t before = item.before();
    iovec vectors[2];
    int count = 0;
    if (item.moved < before) vectors[count++] = {item.length + item.moved, before - item.moved};
    const bool body = sends || item.moved >= before;  // how long a received one is, its length says first
    const size_t at = item.moved > before ? item.moved - before : 0;
    if (body && item.bytes > at) vectors[count++] = {item.data + at, std::min(item.bytes - at, turn_bytes)};
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    if (!sends) {
        const size_t left = item.bytes - at, lazily = body && left >= lazy_bytes ? lazy_bytes : 1;
        if (lazily != lazy) {
            const int value = static_cast<int>(lazily);
            if (setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value) == 0) lazy = lazily;
        }
    }
    for (;;) {
        const ssize_t moved = sends ? sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) : recvmsg(fd, &message, MSG_DONTWAIT);
        if (moved > 0) return moved;
        if (moved == 0) return -2;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
}

class TcpTransfer final : public Transfer {
public:
    TcpTransfer(Tcp& engine, int peer, Stream& stream, void* data, size_t bytes, bool framed);
    ~TcpTransfer() override;
    void wait(Clock::time_point deadline) override;
    void interrupt() noexcept override {
        interrupted_ = true;
        stream_.pump->bell.ring();
    }

private:
    Tcp& engine_;
    const int peer_;
    Stream& stream_;
    Item item_;
    std::atomic<bool> interrupted_{false};
};

class Tcp final : public MeetingEngine {
public:
    Tcp(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration silence)
        : MeetingEngine(rank, size), connect_timeout_(connect_timeout), gone_(std::max<Clock::duration>(silence * 4 / 5, std::chrono::seconds(4))), here_(numeric(address)) {
        listener_ = Descriptor(socket(here_.place.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        socklen_t length = here_.length();
        if (listener_) control_ = control_of(listener_.get());
        if (listener_) set_control(listener_.get(), unpaced);  // what it accepts begins with it
        if (!listener_ || bind(listener_.get(), here_.name(), length) != 0 || listen(listener_.get(), SOMAXCONN) != 0 ||
            getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&here_.place), &length) != 0)
            throw std::runtime_error(words(errno));
        mine_.resize(size, here_);
        for (Address& each : mine_)
            if (getrandom(each.secret, sizeof each.secret, 0) != sizeof each.secret) throw std::runtime_error(words(errno));

        connections_.resize(size);
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank) continue;
            for (int lane = 0; lane < lanes; lane++)
                for (const bool sends : {false, true}) {
                    Stream& stream = connections_[peer][lane].streams[sends];
                    stream.peer = peer;
                    stream.sends = sends;
                    if (lane == 1) direct_.emplace_back();  // the threads of send and recv wait for one direction each
                    stream.pump = lane == 0 ? &collective_ : &direct_.back();
                    stream.pump->streams.push_back(&stream);
                }
        }
    }
    ~Tcp() override { release(); }

    std::vector<std::string> addresses() const override {
        std::vector<std::string> all;
        for (int peer = 0; peer < size; peer++) all.push_back(peer == rank ? std::string() : mine_[peer].bytes());
        return all;
    }
    void set_peers(std::vector<std::string> addresses) override {
        for (const std::string& bytes : addresses) peers_.push_back(Address::of(bytes));
    }

    bool connect(Clock::time_point deadline) override;

    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override {
        return std::make_unique<TcpTransfer>(*this, peer, stream(peer, slot, true), const_cast<void*>(data), bytes, !is_exact(slot));
    }
    std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) override {
        return std::make_unique<TcpTransfer>(*this, peer, stream(peer, slot, false), data, room, !is_exact(slot));
    }

    void abort() noexcept override {
        aborted_ = true;
        std::lock_guard lock(closing_);
        collective_.bell.ring();
        for (const Pump& pump : direct_) pump.bell.ring();
    }

    void disconnect() noexcept override {
        std::lock_guard lock(closing_);
        for (auto& all : connections_)
            for (Connection& connection : all)
                if (connection.socket) shutdown(connection.socket.get(), SHUT_RDWR);
    }

    void release() noexcept override {
        std::lock_guard lock(closing_);
        for (auto& all : connections_)
            for (Connection& connection : all) connection.socket = Descriptor();
        listener_ = Descriptor();
        collective_.bell.remove();
        for (Pump& pump : direct_) pump.bell.remove();
    }

    bool aborted() const { return aborted_; }
    Clock::duration gone() const { return gone_; }

private:
    struct Connection {
        Descriptor socket;
        std::array<Stream, 2> streams;  // [sends]; of the quiet one, unused
    };

    // A connection that is being made: by a stranger who has not said yet who it is, or by this rank.
    struct Caller {
        Descriptor socket;
        int peer = -1, lane = 0;  // of this rank's own calls
        bool called = false;      // the kernel has connected, and the hello has left
        std::string why;          // the last call failed
        Clock::time_point again;  // and when the next one is made
        size_t heard = 0;
        uint8_t hello[hello_bytes] = {};
    };

    Stream& stream(int peer, uint32_t slot, bool sends) { return connections_[peer][is_direct(slot)].streams[sends]; }

    void call(Caller& caller) const;
    bool greet(Caller& caller) const;
    bool hear(Caller& caller) const;
    bool has_all(int peer) const {
        return std::ranges::all_of(connections_[peer], [](const Connection& each) { return bool(each.socket); });
    }
    void settle(Descriptor socket, int peer, int lane);
    void give_up_when_silent(int fd) const;
    [[noreturn]] void refuse(int peer, const std::string& why) const {
        throw Failure(Reason::transport, peer, "no connection to rank " + std::to_string(peer) + " (" + why + ")");
    }

    const Clock::duration connect_timeout_, gone_;  // gone: after so long without an answer
    Address here_;
    Descriptor listener_;
    Control control_{};                   // what the machine takes
    std::vector<Address> mine_, peers_;  // [peer]: what this rank told it; what it told this rank
    std::vector<std::array<Connection, connections>> connections_;
    Pump collective_;
    std::deque<Pump> direct_;  // per peer and direction
    std::mutex closing_;
    std::atomic<bool> aborted_{false};
};

// --- Connecting ---

// To every lower rank all connections; from every higher one.
bool Tcp::connect(Clock::time_point deadline) {
    deadline = std::min(deadline, Clock::now() + connect_timeout_);
    std::deque<Caller> callers;
    int missing = connections * (size - 1);
    for (int peer = 0; peer < rank; peer++)
        for (int lane = 0; lane < connections; lane++) {
            callers.emplace_back();
            callers.back().peer = peer;
            callers.back().lane = lane;
        }

    // Whether this one stays among the callers.
    const auto turn = [&](Caller& caller) {
        if (caller.peer >= 0 ? greet(caller) : hear(caller)) return true;
        if (!caller.socket) return false;
        if (!connections_[caller.peer][caller.lane].socket) missing--;  // else it called again, because its first call broke
        settle(std::move(caller.socket), caller.peer, caller.lane);
        return false;
    };
    const auto strangers = [&] { return std::ranges::count_if(callers, [](const Caller& each) { return each.peer < 0; }); };
    // Who says nothing makes room for who comes later.
    const auto keep_only = [&](ptrdiff_t most) {
        for (auto excess = strangers() - most; excess > 0; excess--) callers.erase(std::ranges::find_if(callers, [](const Caller& each) { return each.peer < 0; }));
    };

    std::vector<pollfd> polled;
    bool full = false;  // no descriptor was left for who called, and no stranger to take one from
    Clock::time_point full_since;
    while (missing > 0) {
        auto wake = full ? std::min(deadline, Clock::now() + redial) : deadline;
        polled = {collective_.bell.ears(), {full ? -1 : listener_.get(), POLLIN, 0}};
        for (Caller& caller : callers) {
            if (!caller.socket && caller.again <= Clock::now()) call(caller);
            if (!caller.socket) wake = std::min(wake, caller.again);
            polled.push_back({caller.socket.get(), static_cast<short>(caller.peer >= 0 && !caller.called ? POLLOUT : POLLIN), 0});
        }
        poll(polled.data(), polled.size(), until(wake));
        if (aborted_) throw Failure(Reason::aborted, -1, "aborted");
        for (size_t i = callers.size(); i-- > 0;)
            if (polled[i + 2].revents != 0 && !turn(callers[i])) callers.erase(callers.begin() + i);
        const bool knocks = full || polled[1].revents != 0, was_full = full;
        full = false;
        for (int i = 0; knocks && i < welcomes_at_once; i++) {
            Address from;
            socklen_t length = sizeof from.place;
            Descriptor socket(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from.place), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
                full = strangers() == 0;
                keep_only(strangers() / 2);
            }
            if (!socket) break;
            if (!same_machine(from, here_)) set_control(socket.get(), beyond_machine(socket.get(), control_));
            callers.emplace_back();
            callers.back().socket = std::move(socket);
            if (!turn(callers.back())) callers.pop_back();
        }
        keep_only(most_strangers);
        if (full && !was_full) full_since = Clock::now();
        // This rank says so before the others give up on it without knowing why.
        const bool for_good = full && Clock::now() - full_since >= full_patience;
        if (missing == 0 || (Clock::now() < deadline && !for_good)) continue;
        int absent = 0;
        while (absent == rank || has_all(absent)) absent++;
        std::string why = full ? words(EMFILE) : "it did not come in time";
        for (const Caller& caller : callers)
            if (caller.peer == absent && !caller.why.empty()) why = caller.why;
        refuse(absent, why);
    }
    std::lock_guard lock(closing_);
    listener_ = Descriptor();
    for (auto& all : connections_)
        for (Connection& connection : all)
            for (Stream& stream : connection.streams) stream.quiet = all[quiet].socket.get();
    return false;
}

void Tcp::call(Caller& caller) const {
    Address there = peers_[caller.peer], from = here_;  // the interface that was chosen is the one that is used
    from.port() = 0;
    // Of a link-local address, each machine has a name of its own for the link.
    if (there.place.ss_family == AF_INET6 && here_.place.ss_family == AF_INET6)
        reinterpret_cast<sockaddr_in6&>(there.place).sin6_scope_id = reinterpret_cast<const sockaddr_in6&>(here_.place).sin6_scope_id;
    Descriptor called(socket(there.place.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (called) set_control(called.get(), unpaced);
    // The port is chosen when it is known where to: a port serves many connections to different places.
    const int on = 1;
    if (called) setsockopt(called.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (!called || bind(called.get(), from.name(), from.length()) != 0) refuse(caller.peer, words(errno));
    if (::connect(called.get(), there.name(), there.length()) != 0 && errno != EINPROGRESS) refuse(caller.peer, words(errno == EADDRNOTAVAIL ? EADDRINUSE : errno));
    caller.socket = std::move(called);
    caller.called = false;
}

// A call of this rank goes on: the kernel has connected, or the listener has answered. False when it is through. One that breaks on
// the way is made again: the listener may have had too many strangers.
bool Tcp::greet(Caller& caller) const {
    const auto breaks = [&](const std::string& why) {
        caller.why = why;
        caller.socket = Descriptor();
        caller.again = Clock::now() + redial;
        return true;
    };
    const int fd = caller.socket.get();
    if (!caller.called) {
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
        // Who took a call and refuses the next one has given up, and the rendezvous will say why.
        if (error == ECONNRESET || (error != 0 && !caller.why.empty())) return breaks(words(error));
        if (error != 0) refuse(caller.peer, words(error));
        if (!same_machine(peers_[caller.peer], here_)) set_control(fd, beyond_machine(fd, control_));
        const uint32_t words_of_hello[3] = {hello_magic, static_cast<uint32_t>(rank), static_cast<uint32_t>(caller.lane)};
        uint8_t hello[hello_bytes];
        std::memcpy(hello, words_of_hello, 12);
        std::memcpy(hello + 12, peers_[caller.peer].secret, secret_bytes);
        if (::send(fd, hello, sizeof hello, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof hello)) return breaks(words(errno));
        caller.called = true;
        return true;
    }
    uint8_t answer;
    const ssize_t got = ::recv(fd, &answer, 1, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    return got == 1 ? false : breaks(got == 0 ? "it closed the connection" : words(errno));
}

// Somebody who called says something. False when it is known, then with its socket, or dropped, then without.
bool Tcp::hear(Caller& caller) const {
    const ssize_t got = ::recv(caller.socket.get(), caller.hello + caller.heard, hello_bytes - caller.heard, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got > 0 && (caller.heard += got) < hello_bytes) return true;
    uint32_t said[3];
    std::memcpy(said, caller.hello, sizeof said);
    const auto [magic, who, lane] = std::to_array(said);
    const bool known = got > 0 && magic == hello_magic && who < static_cast<uint32_t>(size) && static_cast<int>(who) > rank && lane < connections &&
                       same_secret(caller.hello + 12, mine_[who].secret);
    const uint8_t welcome = 1;
    if (!known || ::send(caller.socket.get(), &welcome, 1, MSG_NOSIGNAL) != 1) {
        caller.socket = Descriptor();
        return false;
    }
    caller.peer = static_cast<int>(who);
    caller.lane = static_cast<int>(lane);
    return false;
}

void Tcp::settle(Descriptor socket, int peer, int lane) {
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    give_up_when_silent(socket.get());
    std::lock_guard lock(closing_);
    Connection& connection = connections_[peer][lane];
    connection.socket = std::move(socket);
    for (Stream& each : connection.streams) {
        if (lane == quiet) continue;
        std::lock_guard pump(each.pump->mutex);
        each.fd = connection.socket.get();
    }
}

// The kernel asks a connection on which nothing is under way whether the other side is there, and ends it after so long without an
// answer. A little earlier than the rendezvous would call that rank lost: all of it, with the question of who is to blame, takes no
// longer.
void Tcp::give_up_when_silent(int fd) const {
    const int most = static_cast<int>(std::min<int64_t>(std::chrono::duration_cast<std::chrono::seconds>(gone_).count(), 1 << 20));
    const int on = 1, idle = most / 2, interval = std::max(1, most / 10), count = std::max(1, (most - idle) / interval - 1);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, rto_max_ms, &longest_ask_ms, sizeof longest_ask_ms);
}

// --- Transfers ---

TcpTransfer::TcpTransfer(Tcp& engine, int peer, Stream& stream, void* data, size_t bytes, bool framed)
    : engine_(engine), peer_(peer), stream_(stream), item_{static_cast<uint8_t*>(data), bytes, framed, {}} {
    const uint32_t length = static_cast<uint32_t>(bytes);
    std::memcpy(item_.length, &length, sizeof length);
    std::lock_guard lock(stream_.pump->mutex);
    item_.done = !framed && bytes == 0;
    if (item_.done) return;
    stream_.queue.push_back(&item_);
    if (!stream_.sends) return;
    if (stream_.queue.size() == 1) stream_.advance();  // mostly all of it fits into the kernel's buffer
    if (!item_.done && stream_.pump->waiting) stream_.pump->bell.ring();
}

TcpTransfer::~TcpTransfer() {
    std::lock_guard lock(stream_.pump->mutex);
    if (item_.done) return;
    std::erase(stream_.queue, &item_);
    // Half of it is on its way: what comes after would not be understood.
    if (item_.moved > 0 && stream_.broken.empty()) stream_.broken = "a transfer was given up in the middle";
}

void TcpTransfer::wait(Clock::time_point deadline) {
    Pump& pump = *stream_.pump;
    const auto fail = [](const Stream& stream) {
        const std::string rank = std::to_string(stream.peer);
        throw Failure(Reason::transport, stream.peer, "the connection to rank " + rank + " ended (" + stream.broken + ")");
    };
    std::vector<pollfd> polled;
    std::unique_lock lock(pump.mutex);
    for (;;) {
        bool moving = true;
        while (!item_.done && moving && !engine_.aborted()) {
            moving = false;
            for (Stream* each : pump.streams) moving |= each->wants() && each->advance();
        }
        if (engine_.aborted()) throw Failure(Reason::aborted, -1, "aborted");
        if (item_.done) return;
        if (interrupted_.exchange(false)) throw Failure(Reason::aborted, -1, "interrupted");
        if (!stream_.broken.empty()) fail(stream_);
        const auto now = Clock::now();
        if (now - pump.looked >= patience) {
            pump.looked = now;
            // A little earlier than the kernel gives up a quiet connection, because a look may come that much late.
            for (Stream* each : pump.streams)
                if (!each->look(now, engine_.gone() - 2 * patience)) fail(*each);
        }
        if (now >= deadline) throw Failure(Reason::timeout, peer_, "rank " + std::to_string(peer_) + " did not come in time; see what it does, or allow more (timeoutSeconds)");

        polled = {pump.bell.ears()};
        for (const Stream* each : pump.streams)
            if (each->wants()) polled.push_back({each->fd, static_cast<short>(each->sends ? POLLOUT : POLLIN), 0});
        pump.waiting = true;
        lock.unlock();
        const int ready = poll(polled.data(), polled.size(), std::min(until(deadline), patience_ms));
        lock.lock();
        pump.waiting = false;
        if (polled[0].revents != 0) pump.bell.answer();
        if (ready != 0) continue;
        for (Stream* each : pump.streams)
            if (each->wants()) each->listen_for_life();
    }
}

}  // namespace

std::unique_ptr<MeetingEngine> make_tcp(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration silence) {
    return std::make_unique<Tcp>(rank, size, address, connect_timeout, silence);
}

}  // namespace terse::collectives
