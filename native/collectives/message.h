// A message: 32 bytes of header, then its payload in segments.
//
//   0        4    5     6         7      8        12        16       24       32
//   | magic  | op | dtype | reduction | flags  | sequence | agreement | count | bytes |   little-endian
//                                       bit 0: inline, bits 1 to 7: the caller's note
//
// The receiver compares the header with what it expects before it posts anything for the payload. Payload of up to
// `inline_bytes` rides in the header's own transfer, so a small message is one transfer and waits for nobody's answer.
// A header is always received into room for the largest such transfer, posted ahead of time.
#pragma once
#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <vector>

#include "engine.h"
#include "operation.h"

namespace terse::collectives {

constexpr size_t segment_bytes = 1 << 20;
constexpr size_t inline_bytes = 8192;

struct Header {
    uint32_t magic;
    uint8_t kind, dtype, reduction, flags;
    uint32_t sequence;
    uint32_t agreement;  // a hash of all that both sides must know beyond count and type: lengths of the parts, root, round
    uint64_t count;      // elements
    uint64_t bytes;      // payload of this message
};
static_assert(sizeof(Header) == 32 && std::endian::native == std::endian::little);

struct Counters {
    std::atomic<uint64_t> bytes{0}, messages{0}, header_bytes{0};
    void clear() { bytes = messages = header_bytes = 0; }
};

// What sender and receiver must agree on.
struct Message {
    Kind kind;
    DType dtype;
    Reduction reduction;
    uint32_t sequence;
    uint32_t agreement;
    uint64_t count;
    uint64_t bytes;
    uint8_t note = 0;        // said in the header, compared with nothing
    bool may_inline = true;  // false where the payload is not there yet when the message begins
};

Message message_of(const Operation& operation, uint64_t count, uint64_t bytes, uint32_t agreement = 0);

uint32_t hash_lengths(const std::vector<BufferView>& parts);

// What one thread uses of the engine: two slots, and a header receive per peer.
class Wire {
public:
    Wire(Engine& engine, Counters& counters, uint32_t lane);

    Engine& engine;
    const int rank, size;
    Clock::time_point deadline = Clock::time_point::max();  // of the running operation

    void listen(int peer);  // posts the header receive of this peer, if it is not there
    void listen();          // of all peers

    std::vector<uint8_t> notes;  // what the last all-to-all heard from each rank

    // Memory that lives as long as the wire: incoming segments that are still to be added.
    uint8_t* scratch(size_t bytes);

    // A receive whose header has not arrived has not begun, and can be withdrawn: its wait then throws Reason::withdrawn.
    void begin(bool withdrawable);
    bool withdraw();  // from any thread

private:
    friend class Outgoing;
    friend class Incoming;
    struct Frame {
        std::vector<uint8_t> memory;
        bool arrived = false;
        std::unique_ptr<Transfer> transfer;  // destroyed before its memory
    };
    Frame& arrival(int peer);  // waits for a header
    Counters& counters_;
    const uint32_t header_slot_, payload_slot_;
    std::vector<Frame> frames_;
    std::unique_ptr<uint8_t[]> scratch_;
    size_t scratch_bytes_ = 0;

    std::mutex mutex_;
    enum { may_withdraw, withdrawn, begun } stage_ = begun;
    Transfer* awaited_ = nullptr;
};

// The header leaves at once, or `last`; the payload is pushed in order and must stay as it is until finish.
class Outgoing {
public:
    Outgoing(Wire& wire, int peer, const Message& message, bool last = false);
    Outgoing(Outgoing&&) = default;
    void push(const void* data, size_t bytes);
    void finish();

private:
    void send_frame();
    Wire& wire_;
    int peer_;
    bool inlined_, last_;
    size_t bytes_, pushed_ = 0;
    std::vector<uint8_t> frame_;
    std::vector<std::unique_ptr<Transfer>> posted_;
};

// Waits for the header and throws Reason::mismatch unless it is the expected one. Then memory is posted in order, cut
// exactly as the sender pushes it.
class Incoming {
public:
    Incoming(Wire& wire, int peer, const Message& expected);
    ~Incoming();
    Incoming(Incoming&&) noexcept;
    void post(void* data, size_t bytes);
    void next();    // the oldest posted segment has arrived
    void finish();  // all have
    uint8_t note() const { return note_; }

private:
    Wire* wire_;
    int peer_;
    bool inlined_;
    uint8_t note_ = 0;
    size_t taken_ = 0;  // inlined bytes handed out
    std::vector<std::unique_ptr<Transfer>> posted_;
    size_t waited_ = 0;
};

}  // namespace terse::collectives
