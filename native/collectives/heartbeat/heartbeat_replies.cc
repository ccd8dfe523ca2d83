#include "heartbeat/heartbeat_replies.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "heartbeat/write_line.h"
#include "terse/start_thread.h"

namespace terse::collectives {

HeartbeatReplies::HeartbeatReplies(std::chrono::milliseconds interval) : interval_(interval) {
    thread_ = start_thread([this] { run(); });
}

HeartbeatReplies::~HeartbeatReplies() {
    {
        std::lock_guard lock(mutex_);
        ending_ = true;
        changed_.notify_all();
    }
    thread_.join();
    for (const auto& [number, fd] : connections_) close(fd);
}

void HeartbeatReplies::run() {
    pthread_setname_np(pthread_self(), "terse-replies");
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, interval_, [this] { return ending_; }))
        for (const auto& [number, fd] : connections_) write_line(fd, "");
}

uint64_t HeartbeatReplies::add(int fd) {
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return 0;  // this rank gets no replies
    std::lock_guard lock(mutex_);
    connections_[++added_] = own;
    write_line(own, "");
    return added_;
}

void HeartbeatReplies::remove(uint64_t number) {
    std::lock_guard lock(mutex_);
    const auto found = connections_.find(number);
    if (found == connections_.end()) return;
    close(found->second);
    connections_.erase(found);
}

}  // namespace terse::collectives
