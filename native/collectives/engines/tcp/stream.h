// One direction of a connection: its queue of sends or receives, and the bytes that move.
#pragma once
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engines/engine.h"
#include "engines/tcp/descriptor.h"

namespace terse::collectives::tcp {

// One send or receive, in the queue of its stream until it is done.
struct QueuedTransfer {
    uint8_t* data;
    size_t bytes;       // to move; for a receive of unknown length, the room
    bool has_length;    // its length goes in front of it
    uint8_t length[4];  // that length
    size_t moved = 0;   // bytes of length and data together
    bool done = false;

    size_t length_bytes() const { return has_length ? sizeof length : 0; }
};

struct StreamGroup;

struct Stream {
    int fd = -1, peer = -1;
    bool sends = false;
    StreamGroup* group = nullptr;
    std::deque<QueuedTransfer*> queue;
    std::string broken;     // why nothing moves any more
    int keepalive_fd = -1;  // the connection that tells whether the other machine is alive

    bool is_active() const { return !queue.empty() && broken.empty(); }
    bool advance();  // moves what can be moved now; true if anything was

    // liveness.cc; each sets `broken` if the peer's machine is gone. `silence_limit`: how long it may stay silent.
    void check_keepalive();
    bool check_liveness(Clock::time_point now, Clock::duration silence_limit);  // false: broken

private:
    ssize_t move(QueuedTransfer& transfer);
    bool accept_length(QueuedTransfer& transfer);
    void check_acknowledgements(Clock::time_point now, Clock::duration silence_limit);
    void check_progress(Clock::time_point now, Clock::duration silence_limit);

    size_t low_water_ = 1;  // SO_RCVLOWAT as it is set
    uint64_t moved_ = 0;    // bytes so far
    Clock::time_point checked_{};
    std::optional<Clock::time_point> unacknowledged_since_, stalled_since_;  // as far as the checks have seen
    uint64_t stalled_at_ = 0;                                                // moved_ then
};

// The streams that one thread moves while it waits.
struct StreamGroup {
    std::mutex mutex;
    WakeEvent wake;
    std::vector<Stream*> streams;
    Clock::time_point checked{};
    bool polling = false;  // a transfer that is added now must wake the thread
};

constexpr auto check_interval = std::chrono::milliseconds(500);  // a thread that waits checks so often whether the
                                                                 // other machines are alive

}  // namespace terse::collectives::tcp
