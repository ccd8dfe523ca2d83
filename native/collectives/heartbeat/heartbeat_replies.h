// The rendezvous server's replies to heartbeats, on a thread that JavaScript cannot block: a line every so often on
// each connection.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

namespace terse::collectives {

class HeartbeatReplies {
public:
    explicit HeartbeatReplies(std::chrono::milliseconds interval);
    ~HeartbeatReplies();
    HeartbeatReplies(const HeartbeatReplies&) = delete;

    uint64_t add(int fd);  // duplicates the descriptor; returns a number for `remove`
    void remove(uint64_t number);

private:
    void run();

    const std::chrono::milliseconds interval_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<uint64_t, int> connections_;  // by number: the descriptor
    uint64_t added_ = 0;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace terse::collectives
