// The rendezvous server's replies to heartbeats, on a thread that JavaScript cannot block: a line every so often on
// each connection.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

namespace terse::collectives {

class HeartbeatReplies {
public:
    explicit HeartbeatReplies(std::chrono::milliseconds interval);
    ~HeartbeatReplies();

    uint64_t add(int fd);  // duplicates the descriptor; returns a number for `remove`
    void remove(uint64_t number);

private:
    struct Body;
    std::unique_ptr<Body> body_;
};

}  // namespace terse::collectives
