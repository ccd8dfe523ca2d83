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
#include <thread>

#include "heartbeat/write_line.h"

namespace terse::collectives {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Heartbeat::Body {
    std::string host, hello;
    int port, stop;
    milliseconds interval, silence;
    std::function<void()> on_silence;
    std::thread thread;

    // The round trip that is allowed for, before a new connection is made.
    milliseconds patience() const {
        return std::max(interval, std::min<milliseconds>(silence / 10, std::chrono::seconds(1)));
    }

    // Of the thread.
    bool answered = false;
    Clock::time_point last_reply{}, checked{};

    // Waits until `fd` has one of `events` (then `ready`), or until `until`. False when this heartbeat ends.
    bool wait(int fd, short events, Clock::time_point until, bool& ready) const {
        for (;;) {
            const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
            pollfd polled[] = {{stop, POLLIN, 0}, {fd, events, 0}};
            const int found = poll(polled, 2, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
            if (found < 0 && errno == EINTR) continue;
            ready = polled[1].revents != 0;
            return polled[0].revents == 0;
        }
    }

    void run() {
        pthread_setname_np(pthread_self(), "terse-heartbeat");
        checked = Clock::now();
        bool ready;
        do {
            run_connection();
            check_silence();
        } while (wait(-1, 0, Clock::now() + interval / 4, ready));
    }

    // One connection, until it fails or this heartbeat ends.
    void run_connection() {
        addrinfo hints{}, *found = nullptr;
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
        const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0) {
            connect(fd, found->ai_addr, found->ai_addrlen);
            bool ready = false;
            if (wait(fd, POLLOUT, Clock::now() + patience(), ready) && ready && write_line(fd, hello))
                send_heartbeats(fd);
            close(fd);
        }
        freeaddrinfo(found);
    }

    void send_heartbeats(int fd) {
        const auto opened = Clock::now();
        auto next = opened + interval;
        for (bool ready = false; wait(fd, POLLIN, next, ready);) {
            while (ready) {
                char lines[256];
                const ssize_t got = recv(fd, lines, sizeof lines, MSG_DONTWAIT);
                if (got < 0 && errno == EINTR) continue;
                if (got < 0 && errno == EAGAIN) break;
                if (got <= 0) return;
                answered = true;
                last_reply = Clock::now();
            }
            check_silence();
            const auto now = Clock::now();
            if (now < next) continue;
            if (answered && now - std::max(last_reply, opened) > 2 * patience()) return;
            if (!write_line(fd, "")) return;
            next = now + interval;
        }
    }

    // While this process was stopped for long, the server perhaps was too.
    void check_silence() {
        const auto now = Clock::now();
        if (now - checked >= silence / 2) last_reply = now;
        checked = now;
        if (!answered || now - last_reply < silence) return;
        on_silence();
        answered = false;
    }
};

Heartbeat::Heartbeat(std::string host, int port, std::string hello, milliseconds interval, milliseconds silence,
                     std::function<void()> on_silence)
    : body_(new Body{std::move(host),
                     std::move(hello),
                     port,
                     eventfd(0, EFD_CLOEXEC),
                     interval,
                     silence,
                     std::move(on_silence),
                     {},
                     {},
                     {},
                     {}}) {
    if (body_->stop < 0) throw std::runtime_error("no file descriptor is left for the heartbeat");
    try {
        body_->thread = std::thread([body = body_.get()] { body->run(); });
    } catch (...) {
        close(body_->stop);
        throw std::runtime_error("no thread is left for the heartbeat");
    }
}

Heartbeat::~Heartbeat() {
    const uint64_t one = 1;
    while (::write(body_->stop, &one, sizeof one) < 0 && errno == EINTR) {
    }
    body_->thread.join();
    close(body_->stop);
}

}  // namespace terse::collectives
