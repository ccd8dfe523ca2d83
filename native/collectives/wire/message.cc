#include "wire/message.h"

#include <algorithm>
#include <cstring>

namespace terse::collectives {

Outgoing::Outgoing(Wire& wire, int peer, const Message& message, bool header_last)
    : wire_(wire), peer_(peer), header_last_(header_last), bytes_(message.bytes) {
    const Header header = header_of(message);
    inlined_ = is_inline(header);
    frame_.reserve(sizeof header + (inlined_ ? bytes_ : 0));
    frame_.resize(sizeof header);
    std::memcpy(frame_.data(), &header, sizeof header);
    wire_.counters_.messages.fetch_add(1, std::memory_order_relaxed);
    wire_.counters_.header_bytes.fetch_add(sizeof header, std::memory_order_relaxed);
    if (bytes_ == 0 || (!inlined_ && !header_last_)) send_frame();
}

void Outgoing::send_frame() {
    posted_.push_back(wire_.engine.send(peer_, wire_.header_slot_, frame_.data(), frame_.size()));
}

void Outgoing::push(const void* data, size_t bytes) {
    if (bytes == 0) return;
    const auto* from = static_cast<const uint8_t*>(data);
    wire_.counters_.bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (inlined_) {
        frame_.insert(frame_.end(), from, from + bytes);
        if (frame_.size() == sizeof(Header) + bytes_) send_frame();
        return;
    }
    for (size_t at = 0; at < bytes; at += segment_bytes)
        posted_.push_back(
            wire_.engine.send(peer_, wire_.payload_slot_, from + at, std::min(segment_bytes, bytes - at)));
    pushed_ += bytes;
    if (header_last_ && pushed_ == bytes_) send_frame();
}

void Outgoing::finish() {
    for (auto& transfer : posted_) transfer->wait(wire_.deadline);
    posted_.clear();
}

Incoming::Incoming(Wire& wire, int peer, const Message& expected) : wire_(&wire), peer_(peer) {
    const auto& frame = wire.wait_for_header(peer);
    Header header;
    std::memcpy(&header, frame.memory.data(), sizeof header);
    compare(header, header_of(expected), peer, wire.rank);
    inlined_ = is_inline(header);
    note_ = note_of(header);
}

Incoming::Incoming(Incoming&& other) noexcept
    : wire_(other.wire_),
      peer_(other.peer_),
      inlined_(other.inlined_),
      note_(other.note_),
      taken_(other.taken_),
      posted_(std::move(other.posted_)),
      waited_(other.waited_) {
    other.wire_ = nullptr;
}

Incoming::~Incoming() {
    if (!wire_) return;
    posted_.clear();
    wire_->frames_[peer_].transfer.reset();
    wire_->frames_[peer_].arrived = false;
    wire_->post_header_receive(peer_);  // of this peer's next message
}

void Incoming::post(void* data, size_t bytes) {
    if (bytes == 0) return;
    auto* into = static_cast<uint8_t*>(data);
    if (inlined_) {
        std::memcpy(into, wire_->frames_[peer_].memory.data() + sizeof(Header) + taken_, bytes);
        taken_ += bytes;
        return;
    }
    for (size_t at = 0; at < bytes; at += segment_bytes)
        posted_.push_back(
            wire_->engine.recv(peer_, wire_->payload_slot_, into + at, std::min(segment_bytes, bytes - at)));
}

void Incoming::next() {
    if (inlined_ || waited_ == posted_.size()) return;
    posted_[waited_]->wait(wire_->deadline);
    posted_[waited_++].reset();
}

void Incoming::finish() {
    while (!inlined_ && waited_ < posted_.size()) next();
}

}  // namespace terse::collectives
