// An operation that JavaScript asks for.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "terse/buffer_view.h"

namespace terse::collectives {

// The kinds from `copy` on send no message and exist only for engines that use memory of a device.
//   copy              parts[0] → incoming[0], one of which is on the CPU
//   register_buffer   parts[0] is registered with NCCL
//   split             the place of a split in the order of operations
enum class Kind : uint8_t {
    connect,
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    broadcast,
    send,
    recv,
    barrier,
    gather,
    scatter,
    copy,
    register_buffer,
    deregister_buffer,
    split
};
enum class Reduction : uint8_t { sum, prod, min, max, mean };

inline const char* name_of(Kind kind) {
    static const char* names[] = {"connect",   "all-reduce", "reduce-scatter", "all-gather",     "all-to-all",
                                  "broadcast", "send",       "receive",        "barrier",        "gather",
                                  "scatter",   "copy",       "registration",   "deregistration", "split"};
    return kind <= Kind::split ? names[static_cast<int>(kind)] : "an unknown operation";
}

// Numbered, with the same numbers on all ranks.
inline bool is_counted(Kind kind) { return kind > Kind::connect && kind < Kind::copy; }

inline const char* name_of(Reduction reduction) {
    static const char* names[] = {"sum", "prod", "min", "max", "mean"};
    return reduction <= Reduction::mean ? names[static_cast<int>(reduction)] : "an unknown reduction";
}

inline bool is_rooted(Kind kind) { return kind == Kind::broadcast || kind == Kind::gather || kind == Kind::scatter; }
inline bool is_point_to_point(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

constexpr uint8_t max_note = 127;

struct Operation {
    Kind kind = Kind::barrier;
    Reduction reduction = Reduction::sum;
    int peer = -1;                  // the root of a broadcast, gather or scatter; the other rank of a send or recv
    std::vector<BufferView> parts;  // all-reduce, broadcast, send, recv: one; all-to-all, gather, scatter: what is sent
    std::vector<BufferView> incoming;  // all-to-all, gather, scatter: what is received
    uint8_t note = 0;                  // all-to-all: a number that the caller sends to every rank, 0 to max_note
    int device = -1;                   // the CUDA device of all of its buffers; −1: the CPU
    uintptr_t stream = 0;   // on a device: the caller's stream, which writes the buffers; 0: the default stream
    bool packed = false;    // all-reduce of u8: no sum overflows its byte, so sums of wider words are the same
    bool even = false;      // all-to-all: all parts of all ranks have one length
    uint64_t id = 0;        // of the caller's promise
    uint32_t sequence = 0;  // its number in its queue
};

}  // namespace terse::collectives
