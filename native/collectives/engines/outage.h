// How long a link may be down without ending the run, and what the kernel is told for that. Everything here follows
// from one number.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

namespace terse::collectives {

using Outage = std::chrono::steady_clock::duration;

// A connection that cannot begin for one of these reasons is tried again until an outage would be over: a link is down,
// here or on the way.
constexpr int outage_errors[] = {ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ETIMEDOUT};
constexpr auto retry_interval = std::chrono::milliseconds(100);

// TCP sends unacknowledged data again after pauses of which each is twice as long as the one before it, so the first
// try after an outage may come as late as the outage was long. From Linux 6.15 on the longest pause can be set.
constexpr int rto_max_ms = 44;  // TCP_RTO_MAX_MS
constexpr int longest_pause_ms = 2000;

inline bool limit_pauses(int fd) {
    return setsockopt(fd, IPPROTO_TCP, rto_max_ms, &longest_pause_ms, sizeof longest_pause_ms) == 0;
}

inline bool pauses_can_be_limited() {
    static const bool can = [] {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool done = fd >= 0 && limit_pauses(fd);
        if (fd >= 0) close(fd);
        return done;
    }();
    return can;
}

// How long data may stay unacknowledged: the outage, and the time until TCP tries again after it.
inline Outage silence_limit_of(Outage outage) {
    using std::chrono::seconds;
    const Outage retry = pauses_can_be_limited() ? std::min<Outage>(outage / 2, seconds(4)) : outage + seconds(2);
    return std::max<Outage>(outage + retry, seconds(4));
}

// Lets the kernel probe an idle connection, and end it after more unanswered probes than an outage takes.
inline void survive_outage(int fd, Outage outage) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(outage).count();
    const int on = 1, idle = static_cast<int>(std::clamp<int64_t>(seconds / 4, 1, 2));
    const int interval = static_cast<int>(std::clamp<int64_t>(seconds / 30, 1, 1 << 14));
    const int count = static_cast<int>(std::clamp<int64_t>(seconds / interval + 2, 3, 127));  // the kernel takes up to
                                                                                              // 127
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    limit_pauses(fd);
}

}  // namespace terse::collectives
