#pragma once
#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace terse::collectives {

// False if the connection is broken. Never waits: a line that does not fit into the socket's buffer is dropped, because
// the other side does not read.
inline bool write_line(int fd, const std::string& text) {
    const std::string line = text + "\n";
    const ssize_t sent = ::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == static_cast<ssize_t>(line.size()) || (sent < 0 && errno == EAGAIN);
}

}  // namespace terse::collectives
