#include "beat.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace terse::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What does not fit into the socket's buffer was not going to be read: no waiting.
bool write(int fd, const std::string& line) {
    const ssize_t sent = ::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == static_cast<ssize_t>(line.size()) || (sent < 0 && errno == EAGAIN);
}

}  // namespace

struct Beat::Body {
    std::string host, hello;
    int port, stop;
    milliseconds interval, silence;
    std::function<void()> silent;
    std::thread thread;

    // Waits until `fd` is as `events` say, but not beyond `until`; false when all is over.
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

    void run() const {
        pthread_setname_np(pthread_self(), "terse-beat");
        bool ready;
        do speak();
        while (wait(-1, 0, Clock::now() + interval, ready));
    }

    // One connection, until it fails or all is over.
    void speak() const {
        addrinfo hints{}, *found = nullptr;
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
        const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0) {
            connect(fd, found->ai_addr, found->ai_addrlen);
            bool ready = false;
            if (wait(fd, POLLOUT, Clock::time_point::max(), ready) && write(fd, hello + "\n")) beat(fd);
            close(fd);
        }
        freeaddrinfo(found);
    }

    void beat(int fd) const {
        auto next = Clock::now() + interval;
        bool answered = false;
        Clock::time_point heard;
        for (bool ready = false; wait(fd, POLLIN, next, ready);) {
            while (ready) {
                char lines[256];
                const ssize_t got = recv(fd, lines, sizeof lines, MSG_DONTWAIT);
                if (got < 0 && errno == EINTR) continue;
                if (got < 0 && errno == EAGAIN) break;
                if (got <= 0) return;
                answered = true;
                heard = Clock::now();
            }
            const auto now = Clock::now();
            if (now - next >= interval) heard = now;  // this process was stopped itself, and the other one perhaps with it
            if (answered && now - heard >= silence) {
                silent();
                answered = false;
            }
            if (now < next) continue;
            if (!write(fd, "\n")) return;
            next = now + interval;
        }
    }
};

Beat::Beat(std::string host, int port, std::string hello, milliseconds interval, milliseconds silence, std::function<void()> silent)
    : body_(new Body{std::move(host), std::move(hello), port, eventfd(0, EFD_CLOEXEC), interval, silence, std::move(silent), {}}) {
    if (body_->stop < 0) throw std::runtime_error("no file descriptor is left for the heartbeat");
    try {
        body_->thread = std::thread([body = body_.get()] { body->run(); });
    } catch (...) {
        close(body_->stop);
        throw std::runtime_error("no thread is left for the heartbeat");
    }
}

Beat::~Beat() {
    const uint64_t one = 1;
    while (::write(body_->stop, &one, sizeof one) < 0 && errno == EINTR) {
    }
    body_->thread.join();
    close(body_->stop);
}

struct Answers::Body {
    const milliseconds interval;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<uint64_t, int> connections;
    uint64_t added = 0;
    bool ending = false;
    std::thread thread;

    void run() {
        pthread_setname_np(pthread_self(), "terse-answers");
        std::unique_lock lock(mutex);
        while (!changed.wait_for(lock, interval, [this] { return ending; }))
            for (const auto& [number, fd] : connections) write(fd, "\n");
    }
};

Answers::Answers(milliseconds interval) : body_(new Body{interval, {}, {}, {}, 0, false, {}}) {
    body_->thread = std::thread([body = body_.get()] { body->run(); });
}

Answers::~Answers() {
    {
        std::lock_guard lock(body_->mutex);
        body_->ending = true;
        body_->changed.notify_all();
    }
    body_->thread.join();
    for (const auto& [number, fd] : body_->connections) close(fd);
}

uint64_t Answers::add(int fd) {
    const int ours = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (ours < 0) return 0;  // unanswered, its rank goes without this sign of life
    std::lock_guard lock(body_->mutex);
    body_->connections[++body_->added] = ours;
    write(ours, "\n");
    return body_->added;
}

void Answers::remove(uint64_t number) {
    std::lock_guard lock(body_->mutex);
    const auto found = body_->connections.find(number);
    if (found == body_->connections.end()) return;
    close(found->second);
    body_->connections.erase(found);
}

}  // namespace terse::collectives
