// The header of a message, 32 bytes. Its payload follows in segments.
//
//   0        4    5     6         7      8        12        16       24       32
//   | magic  | op | dtype | reduction | flags  | sequence | agreement | count | bytes |   little-endian
//                                       bit 0: inline, bits 1 to 7: the caller's note
//
// The receiver compares the header with the one that it expects before it posts any receive of payload. A payload of up
// to `inline_bytes` travels in the header's transfer, so a small message is one transfer and needs no answer of the
// receiver.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "communicator/operation.h"

namespace terse::collectives {

// The sizes of the wire. bytes.ts repeats them where no addon need be, and a test compares.
constexpr size_t segment_bytes = 1 << 20;
constexpr size_t inline_bytes = 8192;
constexpr size_t small_sum_bytes = 1 << 16;  // the most that a rank sends in a direct sum
constexpr size_t least_ring_segment = 1 << 16, most_ring_segment = 1 << 18;  // where a send does not wait for room

struct Header {
    uint32_t magic;
    uint8_t kind, dtype, reduction, flags;
    uint32_t sequence;
    uint32_t agreement;
    uint64_t count;  // elements
    uint64_t bytes;  // of this message's payload
};
static_assert(sizeof(Header) == 32 && std::endian::native == std::endian::little);

// What sender and receiver must agree on.
struct Message {
    Kind kind;  // of a receive: send
    DType dtype;
    Reduction reduction;
    uint32_t sequence;
    uint32_t agreement;  // one number for all else that must be equal: a hash of the parts' lengths, the root, or the
                         // round
    uint64_t count;
    uint64_t bytes;
    uint8_t note = 0;        // travels in the header and is not compared
    bool may_inline = true;  // false if the payload is not complete when the message begins
};

Message message_of(const Operation& operation, uint64_t count, uint64_t bytes, uint32_t agreement = 0);
uint32_t hash_lengths(const std::vector<BufferView>& parts);

Header header_of(const Message& message);
inline bool is_inline(const Header& header) { return header.flags & 1; }
inline uint8_t note_of(const Header& header) { return header.flags >> 1; }

// Throws Reason::mismatch unless the header that `peer` sent to `rank` is the expected one.
void compare(const Header& received, const Header& expected, int peer, int rank);

}  // namespace terse::collectives
