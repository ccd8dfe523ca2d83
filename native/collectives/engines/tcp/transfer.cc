#include "engines/tcp/transfer.h"

#include <algorithm>
#include <cstring>

namespace terse::collectives::tcp {

int poll_timeout(Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

TcpTransfer::TcpTransfer(const EngineState& engine, Stream& stream, void* data, size_t bytes, bool has_length)
    : engine_(engine), stream_(stream), transfer_{static_cast<uint8_t*>(data), bytes, has_length, {}} {
    const uint32_t length = static_cast<uint32_t>(bytes);
    std::memcpy(transfer_.length, &length, sizeof length);
    std::lock_guard lock(stream_.group->mutex);
    transfer_.done = !has_length && bytes == 0;
    if (transfer_.done) return;
    stream_.queue.push_back(&transfer_);
    if (!stream_.sends) return;
    if (stream_.queue.size() == 1) stream_.advance();  // usually all of it fits into the kernel's buffer
    if (!transfer_.done && stream_.group->polling) stream_.group->wake.notify();
}

TcpTransfer::~TcpTransfer() {
    std::lock_guard lock(stream_.group->mutex);
    if (transfer_.done) return;
    std::erase(stream_.queue, &transfer_);
    // A part of it has moved, so the bytes that follow could not be understood.
    if (transfer_.moved > 0 && stream_.broken.empty()) stream_.broken = "a transfer was given up in the middle";
}

void TcpTransfer::wait(Clock::time_point deadline) {
    StreamGroup& group = *stream_.group;
    const auto fail = [](const Stream& stream) {
        const std::string rank = std::to_string(stream.peer);
        throw Failure(Reason::transport, stream.peer,
                      "the connection to rank " + rank + " ended (" + stream.broken + ")");
    };
    std::vector<pollfd> polled;
    std::unique_lock lock(group.mutex);
    for (;;) {
        bool moving = true;
        while (!transfer_.done && moving && !engine_.aborted) {
            moving = false;
            for (Stream* each : group.streams) moving |= each->is_active() && each->advance();
        }
        if (engine_.aborted) throw Failure(Reason::aborted, -1, "aborted");
        if (transfer_.done) return;
        if (interrupted_.exchange(false)) throw Failure(Reason::aborted, -1, "interrupted");
        if (!stream_.broken.empty()) fail(stream_);
        const auto now = Clock::now();
        if (now - group.checked >= check_interval) {
            group.checked = now;
            // A little earlier than the kernel ends an idle connection, because a check may be late by an interval.
            for (Stream* each : group.streams)
                if (!each->check_liveness(now, engine_.silence_limit - 2 * check_interval)) fail(*each);
        }
        if (now >= deadline) throw timed_out(stream_.peer);

        polled = {group.wake.polled()};
        for (const Stream* each : group.streams)
            if (each->is_active()) polled.push_back({each->fd, static_cast<short>(each->sends ? POLLOUT : POLLIN), 0});
        group.polling = true;
        lock.unlock();
        const int ready = poll(polled.data(), polled.size(),
                               std::min<int>(poll_timeout(deadline), check_interval.count()));
        lock.lock();
        group.polling = false;
        if (polled[0].revents != 0) group.wake.clear();
        if (ready != 0) continue;
        for (Stream* each : group.streams)
            if (each->is_active()) each->check_keepalive();
    }
}

}  // namespace terse::collectives::tcp
