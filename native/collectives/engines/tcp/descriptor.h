// A file descriptor with an owner, and an event that ends a poll.
#pragma once
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace terse::collectives::tcp {

class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_;
};

// Ends a thread's poll, from any thread.
class WakeEvent {
public:
    WakeEvent() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (!event_) throw std::runtime_error("no file descriptor is left");
    }
    void notify() const noexcept {
        if (event_) eventfd_write(event_.get(), 1);
    }
    void clear() const noexcept {
        eventfd_t count;
        eventfd_read(event_.get(), &count);
    }
    void close() noexcept { event_ = Descriptor(); }  // no thread polls it any more
    pollfd polled() const { return {event_.get(), POLLIN, 0}; }

private:
    Descriptor event_;
};

}  // namespace terse::collectives::tcp
