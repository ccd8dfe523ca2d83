// One send or receive. The thread that waits for it moves all streams of its group until it is done, so data is read by
// the thread that uses it next.
#pragma once
#include <atomic>

#include "engines/tcp/stream.h"

namespace terse::collectives::tcp {

// What a transfer needs to know of its engine.
struct EngineState {
    std::atomic<bool> aborted{false};
    Clock::duration silence_limit;
};

class TcpTransfer final : public Transfer {
public:
    // `has_length`: the length goes in front of the data; then `bytes` of a receive is the room.
    TcpTransfer(const EngineState& engine, Stream& stream, void* data, size_t bytes, bool has_length);
    ~TcpTransfer() override;
    void wait(Clock::time_point deadline) override;
    void interrupt() noexcept override {
        interrupted_ = true;
        stream_.group->wake.notify();
    }

private:
    const EngineState& engine_;
    Stream& stream_;
    QueuedTransfer transfer_;
    std::atomic<bool> interrupted_{false};
};

// Milliseconds for poll, at least what is left until the deadline.
int poll_timeout(Clock::time_point deadline);

}  // namespace terse::collectives::tcp
