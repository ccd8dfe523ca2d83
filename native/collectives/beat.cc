#include "beat.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

namespace terse::collectives {

struct Beat::Body {
    std::string host, hello;
    int port, interval_ms, stop;
    std::thread thread;

    bool stopped(int wait_ms) const {
        pollfd event{stop, POLLIN, 0};
        return poll(&event, 1, wait_ms) > 0;
    }

    void run() const {
        pthread_setname_np(pthread_self(), "terse-beat");
        addrinfo hints{}, *found = nullptr;
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
        const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0) {
            connect(fd, found->ai_addr, found->ai_addrlen);
            pollfd ready{fd, POLLOUT, 0};
            while (poll(&ready, 1, 100) == 0)
                if (stopped(0)) break;
            // What does not fit into the socket's buffer was not going to be read: no waiting.
            if (write(fd, hello) && write(fd, "\n"))
                while (!stopped(interval_ms) && write(fd, "\n")) {
                }
            close(fd);
        }
        freeaddrinfo(found);
    }

    static bool write(int fd, const std::string& line) {
        return ::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(line.size()) || errno == EAGAIN;
    }
};

Beat::Beat(std::string host, int port, std::string hello, int interval_ms) : body_(std::make_unique<Body>()) {
    body_->host = std::move(host);
    body_->hello = std::move(hello);
    body_->port = port;
    body_->interval_ms = interval_ms;
    body_->stop = eventfd(0, EFD_CLOEXEC);
    if (body_->stop < 0) throw std::runtime_error("no file descriptor is left for the heartbeat");
    body_->thread = std::thread([body = body_.get()] { body->run(); });
}

Beat::~Beat() {
    const uint64_t one = 1;
    while (::write(body_->stop, &one, sizeof one) < 0 && errno == EINTR) {
    }
    body_->thread.join();
    close(body_->stop);
}

}  // namespace terse::collectives
