#include "heartbeat/heartbeat_replies.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "heartbeat/write_line.h"

namespace terse::collectives {

using std::chrono::milliseconds;

struct HeartbeatReplies::Body {
    const milliseconds interval;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<uint64_t, int> connections;
    uint64_t added = 0;
    bool ending = false;
    std::thread thread;

    void run() {
        pthread_setname_np(pthread_self(), "terse-replies");
        std::unique_lock lock(mutex);
        while (!changed.wait_for(lock, interval, [this] { return ending; }))
            for (const auto& [number, fd] : connections) write_line(fd, "");
    }
};

HeartbeatReplies::HeartbeatReplies(milliseconds interval) : body_(new Body{interval, {}, {}, {}, 0, false, {}}) {
    body_->thread = std::thread([body = body_.get()] { body->run(); });
}

HeartbeatReplies::~HeartbeatReplies() {
    {
        std::lock_guard lock(body_->mutex);
        body_->ending = true;
        body_->changed.notify_all();
    }
    body_->thread.join();
    for (const auto& [number, fd] : body_->connections) close(fd);
}

uint64_t HeartbeatReplies::add(int fd) {
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return 0;  // this rank gets no replies
    std::lock_guard lock(body_->mutex);
    body_->connections[++body_->added] = own;
    write_line(own, "");
    return body_->added;
}

void HeartbeatReplies::remove(uint64_t number) {
    std::lock_guard lock(body_->mutex);
    const auto found = body_->connections.find(number);
    if (found == body_->connections.end()) return;
    close(found->second);
    body_->connections.erase(found);
}

}  // namespace terse::collectives
