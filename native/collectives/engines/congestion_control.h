// The congestion control algorithm of a TCP connection.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "engines/distance.h"

namespace terse::collectives {

// bbr measures a path and paces its sends. That is wrong in two cases:
//  - between ranks of one machine, where memory is never congested: bbr would take up to half of the time;
//  - to a machine nearby: bbr keeps the rate that a stream had when it was alone, but the streams of an all-to-all take
//    turns, so it sends too fast, loses many packets at once, and then waits.
// The kernel never ends pacing once it has begun on a connection. So reno is set before a socket connects, and the
// machine's own algorithm is set again on connections to machines farther away.
using CongestionControl = std::array<char, 16>;
constexpr CongestionControl unpaced = {"reno"};

inline CongestionControl congestion_control_of(int fd) {
    CongestionControl control{};
    socklen_t length = control.size();
    getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control.data(), &length);
    return control;
}

// Leaves the socket as it is if the kernel refuses.
inline void set_congestion_control(int fd, const CongestionControl& control) {
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control.data(), std::strlen(control.data()));
}

// For a new connection to another machine: this machine's default, unless that is bbr and the other machine is nearby.
inline CongestionControl congestion_control_for(int fd, const CongestionControl& machine_default) {
    return is_near(fd) && std::strncmp(machine_default.data(), "bbr", 3) == 0 ? unpaced : machine_default;
}

}  // namespace terse::collectives
