// The kernel's congestion control of a connection.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace terse::collectives {

constexpr uint32_t near_us = 10000;  // the round trip to a machine nearby is shorter

// Who paces, where the kernel is asked. Between ranks of one machine nobody should: memory is never congested, and what measures and
// paces (bbr) would take up to half of the time. Nor to a machine nearby: bbr believes in how fast a stream was while it had the way for
// itself, and the streams of an all-to-all take turns on it, so that it sends too fast, loses much at once, and then waits. It must not
// begin, because the kernel never ends it: so it is chosen before there is a connection, and the machine's own choice is put back for
// those that go farther.
using Control = std::array<char, 16>;
constexpr Control unpaced = {"reno"};

inline Control control_of(int fd) {
    Control control{};
    socklen_t length = control.size();
    getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control.data(), &length);
    return control;
}

// Where it is refused, all stays as it was.
inline void set_control(int fd, const Control& control) { setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control.data(), std::strlen(control.data())); }

// For a connection that has just been made to another machine: the machine's own choice, or none that paces.
inline Control beyond_machine(int fd, const Control& own) {
    tcp_info info{};
    socklen_t length = sizeof info;
    const bool near = getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_rtt < near_us;
    return near && std::strncmp(own.data(), "bbr", 3) == 0 ? unpaced : own;
}

}  // namespace terse::collectives
