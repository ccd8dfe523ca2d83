// How far away another machine is.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>

namespace terse::collectives {

constexpr uint32_t near_us = 10000;  // round trips to a nearby machine are shorter

// Of the machine at the other end of a connection, by the round trips that it has measured.
inline bool is_near(int fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_rtt < near_us;
}

}  // namespace terse::collectives
