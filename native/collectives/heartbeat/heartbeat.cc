#include "heartbeat/heartbeat.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "heartbeat/write_line.h"
#include "terse/start_thread.h"

namespace terse::collectives {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Heartbeat::Heartbeat(std::string host, int port, std::string hello, milliseconds interval, milliseconds silence,
                     std::function<void()> on_silence)
    : host_(std::move(host)),
      hello_(std::move(hello)),
      port_(port),
      interval_(interval),
      silence_(silence),
      on_silence_(std::move(on_silence)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
    if (stop_ < 0) throw std::runtime_error("no file descriptor is left for the heartbeat");
    try {
        thread_ = start_thread([this] { run(); });
    } catch (...) {
        close(stop_);
        throw;
    }
}

Heartbeat::~Heartbeat() {
    const uint64_t one = 1;
    while (::write(stop_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
    close(stop_);
}

// The round trip that is allowed for, before a new connection is made.
milliseconds Heartbeat::patience() const {
    return std::max(interval_, std::min<milliseconds>(silence_ / 10, std::chrono::seconds(1)));
}

// Waits until `fd` has one of `events` (then `ready`), or until `until`. False when this heartbeat ends.
bool Heartbeat::wait(int fd, short events, Clock::time_point until, bool& ready) const {
    for (;;) {
        const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
        pollfd polled[] = {{stop_, POLLIN, 0}, {fd, events, 0}};
        const int found = poll(polled, 2, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
        if (found < 0 && errno == EINTR) continue;
        ready = polled[1].revents != 0;
        return polled[0].revents == 0;
    }
}

void Heartbeat::run() {
    pthread_setname_np(pthread_self(), "terse-heartbeat");
    checked_ = Clock::now();
    bool ready;
    do {
        run_connection();
        check_silence();
    } while (wait(-1, 0, Clock::now() + interval_ / 4, ready));
}

// One connection, until it fails or this heartbeat ends.
void Heartbeat::run_connection() {
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host_.c_str(), std::to_string(port_).c_str(), &hints, &found) != 0) return;
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        connect(fd, found->ai_addr, found->ai_addrlen);
        bool ready = false;
        if (wait(fd, POLLOUT, Clock::now() + patience(), ready) && ready && write_line(fd, hello_)) send_heartbeats(fd);
        close(fd);
    }
    freeaddrinfo(found);
}

void Heartbeat::send_heartbeats(int fd) {
    const auto opened = Clock::now();
    auto next = opened + interval_;
    for (bool ready = false; wait(fd, POLLIN, next, ready);) {
        while (ready) {
            char lines[256];
            const ssize_t got = recv(fd, lines, sizeof lines, MSG_DONTWAIT);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) return;
            answered_ = true;
            last_reply_ = Clock::now();
        }
        check_silence();
        const auto now = Clock::now();
        if (now < next) continue;
        if (answered_ && now - std::max(last_reply_, opened) > 2 * patience()) return;
        if (!write_line(fd, "")) return;
        next = now + interval_;
    }
}

// While this process was stopped for long, the server perhaps was too.
void Heartbeat::check_silence() {
    const auto now = Clock::now();
    if (now - checked_ >= silence_ / 2) last_reply_ = now;
    checked_ = now;
    if (!answered_ || now - last_reply_ < silence_) return;
    on_silence_();
    answered_ = false;
}

}  // namespace terse::collectives
