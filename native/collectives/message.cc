#include "message.h"

#include <algorithm>
#include <cstring>
#include <exception>

namespace terse::collectives {
namespace {

constexpr uint32_t magic = 0x32535254;  // "TRS2"

std::string elements(uint64_t count, uint8_t dtype) {
    const char* type = dtype <= static_cast<uint8_t>(DType::boolean) ? name_of(static_cast<DType>(dtype)) : "unknown";
    return std::to_string(count) + " " + type;
}

std::string call(const Header& header) {
    return std::string(name_of(static_cast<Kind>(header.kind))) + " number " + std::to_string(header.sequence);
}

void compare(const Header& got, const Header& want, int peer, int rank) {
    const std::string theirs = "rank " + std::to_string(peer), ours = "rank " + std::to_string(rank);
    const auto refuse = [&](const std::string& sentence) { throw Failure(Reason::mismatch, peer, sentence); };
    if (got.magic != want.magic) refuse("what " + theirs + " sends does not begin like a message of this version; every rank must run the same build");
    if (got.kind != want.kind || got.sequence != want.sequence)
        refuse(theirs + " is in " + call(got) + " while " + ours + " is in " + call(want) +
               "; every rank must call the same operations in the same order");
    if (is_rooted(static_cast<Kind>(want.kind)) && got.agreement != want.agreement)
        refuse("the root of this " + std::string(name_of(static_cast<Kind>(want.kind))) + " is rank " + std::to_string(got.agreement) + " on " + theirs + " and rank " +
               std::to_string(want.agreement) + " on " + ours + "; every rank must name the same root");
    if (got.count != want.count || got.dtype != want.dtype)
        refuse(theirs + " has " + elements(got.count, got.dtype) + " where " + ours + " has " + elements(want.count, want.dtype) +
               "; sizes and types must be the same on both");
    if (got.reduction != want.reduction)
        refuse(theirs + " asks for " + name_of(static_cast<Reduction>(got.reduction)) + " and " + ours + " for " +
               name_of(static_cast<Reduction>(want.reduction)) + "; every rank must ask for the same");
    if (got.agreement != want.agreement) refuse(theirs + " and " + ours + " give different lengths of the parts; every rank must give the same list");
    if (got.bytes != want.bytes)
        refuse(theirs + " announces " + std::to_string(got.bytes) + " bytes where " + ours + " expects " + std::to_string(want.bytes) +
               "; what one sends must be as long as what the other receives");
}

Header header_of(const Message& m) {
    return {magic,      static_cast<uint8_t>(m.kind), static_cast<uint8_t>(m.dtype), static_cast<uint8_t>(m.reduction),
            static_cast<uint8_t>(m.note << 1 | (m.may_inline && m.bytes <= inline_bytes)), m.sequence, m.agreement, m.count, m.bytes};
}

}  // namespace

Message message_of(const Operation& operation, uint64_t count, uint64_t bytes, uint32_t agreement) {
    const auto& memory = operation.parts.empty() ? operation.incoming : operation.parts;
    const DType dtype = memory.empty() ? DType::u8 : memory[0].dtype;
    return {operation.kind, dtype, operation.reduction, operation.sequence, agreement, count, bytes};
}

uint32_t hash_lengths(const std::vector<BufferView>& parts) {  // FNV-1a over the lengths
    uint32_t hash = 2166136261u;
    for (const BufferView& part : parts)
        for (int byte = 0; byte < 8; byte++) hash = (hash ^ ((part.length >> (8 * byte)) & 0xff)) * 16777619u;
    return hash;
}

Wire::Wire(Engine& engine, Counters& counters, uint32_t lane)
    : engine(engine), rank(engine.rank), size(engine.size), counters_(counters), header_slot_(2 * lane), payload_slot_(2 * lane + 1), frames_(engine.size) {}

void Wire::listen(int peer) {
    Frame& frame = frames_[peer];
    if (frame.transfer) return;
    frame.memory.resize(sizeof(Header) + inline_bytes);
    std::memset(frame.memory.data(), 0, sizeof(Header));  // what comes may be shorter than a header: then it is not the last one
    frame.transfer = engine.recv(peer, header_slot_, frame.memory.data(), frame.memory.size());
}

void Wire::listen() {
    for (int peer = 0; peer < size; peer++)
        if (peer != rank) listen(peer);
}

Wire::Frame& Wire::arrival(int peer) {
    listen(peer);
    Frame& frame = frames_[peer];
    const auto check = [&] {
        if (stage_ == withdrawn) throw Failure(Reason::withdrawn, peer, "withdrawn");
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
        check();  // a header that has come all the same is the next receive's
        if (failed) std::rethrow_exception(failed);
    }
    std::lock_guard lock(mutex_);
    check();
    stage_ = begun;
    return frame;
}

void Wire::begin(bool withdrawable) {
    std::lock_guard lock(mutex_);
    stage_ = withdrawable ? may_withdraw : begun;
}

bool Wire::withdraw() {
    std::lock_guard lock(mutex_);
    if (stage_ == begun) return false;
    stage_ = withdrawn;
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

Outgoing::Outgoing(Wire& wire, int peer, const Message& message, bool last) : wire_(wire), peer_(peer), last_(last), bytes_(message.bytes) {
    const Header header = header_of(message);
    inlined_ = header.flags & 1;
    frame_.reserve(sizeof header + (inlined_ ? bytes_ : 0));
    frame_.resize(sizeof header);
    std::memcpy(frame_.data(), &header, sizeof header);
    wire_.counters_.messages.fetch_add(1, std::memory_order_relaxed);
    wire_.counters_.header_bytes.fetch_add(sizeof header, std::memory_order_relaxed);
    if (bytes_ == 0 || (!inlined_ && !last_)) send_frame();
}

void Outgoing::send_frame() { posted_.push_back(wire_.engine.send(peer_, wire_.header_slot_, frame_.data(), frame_.size())); }

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
        posted_.push_back(wire_.engine.send(peer_, wire_.payload_slot_, from + at, std::min(segment_bytes, bytes - at)));
    pushed_ += bytes;
    if (last_ && pushed_ == bytes_) send_frame();
}

void Outgoing::finish() {
    for (auto& transfer : posted_) transfer->wait(wire_.deadline);
    posted_.clear();
}

Incoming::Incoming(Wire& wire, int peer, const Message& expected) : wire_(&wire), peer_(peer) {
    const auto& frame = wire.arrival(peer);
    Header got;
    std::memcpy(&got, frame.memory.data(), sizeof got);
    const Header want = header_of(expected);
    compare(got, want, peer, wire.rank);
    if ((got.flags & 1) != (want.flags & 1)) throw Failure(Reason::mismatch, peer, "rank " + std::to_string(peer) + " cuts its messages in another way; every rank must run the same build");
    inlined_ = got.flags & 1;
    note_ = got.flags >> 1;
}

Incoming::Incoming(Incoming&& other) noexcept
    : wire_(other.wire_), peer_(other.peer_), inlined_(other.inlined_), note_(other.note_), taken_(other.taken_), posted_(std::move(other.posted_)), waited_(other.waited_) {
    other.wire_ = nullptr;
}

Incoming::~Incoming() {
    if (!wire_) return;
    posted_.clear();
    wire_->frames_[peer_].transfer.reset();
    wire_->frames_[peer_].arrived = false;
    wire_->listen(peer_);  // for this peer's next message
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
        posted_.push_back(wire_->engine.recv(peer_, wire_->payload_slot_, into + at, std::min(segment_bytes, bytes - at)));
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
