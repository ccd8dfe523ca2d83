#include "wire/wire.h"

#include <cstring>
#include <exception>

#include "wire/header.h"

namespace terse::collectives {

Wire::Wire(Engine& engine, Counters& counters, uint32_t channel)
    : engine(engine),
      rank(engine.rank),
      size(engine.size),
      counters_(counters),
      header_slot_(2 * channel),
      payload_slot_(2 * channel + 1),
      frames_(engine.size) {}

void Wire::post_header_receive(int peer) {
    Frame& frame = frames_[peer];
    if (frame.transfer) return;
    frame.memory.resize(sizeof(Header) + inline_bytes);
    std::memset(frame.memory.data(), 0, sizeof(Header));  // a message shorter than a header must not leave parts of the
                                                          // last one
    frame.transfer = engine.recv(peer, header_slot_, frame.memory.data(), frame.memory.size());
}

void Wire::post_header_receives() {
    for (int peer = 0; peer < size; peer++)
        if (peer != rank) post_header_receive(peer);
}

Wire::Frame& Wire::wait_for_header(int peer) {
    post_header_receive(peer);
    Frame& frame = frames_[peer];
    const auto check = [&] {
        if (state_ == cancelled) throw Failure(Reason::cancelled, peer, "cancelled");
    };
    if (!frame.arrived) {
        {
            std::lock_guard lock(mutex_);
            check();
            awaited_ = frame.transfer.get();
        }
        std::exception_ptr failed;
        try {
            frame.transfer->wait(deadline);
            frame.arrived = true;
        } catch (...) {
            failed = std::current_exception();
        }
        std::lock_guard lock(mutex_);
        awaited_ = nullptr;
        check();  // a header that has arrived all the same belongs to the next receive
        if (failed) std::rethrow_exception(failed);
    }
    std::lock_guard lock(mutex_);
    check();
    state_ = started;
    return frame;
}

std::unique_ptr<Transfer> Wire::send_go_ahead(int peer) {
    static constexpr uint8_t byte = 0;
    return engine.send(peer, payload_slot_, &byte, sizeof byte);
}

void Wire::wait_for_go_ahead(int peer) {
    uint8_t byte;
    engine.recv(peer, payload_slot_, &byte, sizeof byte)->wait(deadline);
}

void Wire::begin(bool may_be_cancelled) {
    std::lock_guard lock(mutex_);
    state_ = may_be_cancelled ? cancellable : started;
}

bool Wire::cancel() {
    std::lock_guard lock(mutex_);
    if (state_ == started) return false;
    state_ = cancelled;
    if (awaited_) awaited_->interrupt();
    return true;
}

uint8_t* Wire::scratch(size_t bytes) {
    if (bytes > scratch_bytes_) {
        scratch_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
        scratch_bytes_ = bytes;
    }
    return scratch_.get();
}

}  // namespace terse::collectives
