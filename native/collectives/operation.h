// What JavaScript asks for, as the wire threads see it.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "terse/buffer_view.h"

namespace terse::collectives {

// From `copy` on they need no message, and are for engines that move memory of a device: parts[0] → incoming[0], one of them on the
// CPU; parts[0] made known to the network, and no longer; and the place in the order at which the group is split.
enum class Kind : uint8_t { connect, all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, recv, barrier, gather, scatter, copy, enroll, disenroll, split };
enum class Reduction : uint8_t { sum, prod, min, max, mean };

inline const char* name_of(Kind kind) {
    static const char* names[] = {"connect", "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "send", "receive", "barrier", "gather", "scatter", "copy", "registration", "deregistration", "split"};
    return kind <= Kind::split ? names[static_cast<int>(kind)] : "an unknown operation";
}

// Numbered alike on all ranks.
inline bool is_counted(Kind kind) { return kind > Kind::connect && kind < Kind::copy; }

inline const char* name_of(Reduction reduction) {
    static const char* names[] = {"sum", "prod", "min", "max", "mean"};
    return reduction <= Reduction::mean ? names[static_cast<int>(reduction)] : "an unknown reduction";
}

inline bool is_rooted(Kind kind) { return kind == Kind::broadcast || kind == Kind::gather || kind == Kind::scatter; }

constexpr uint8_t max_note = 127;

struct Operation {
    Kind kind = Kind::barrier;
    Reduction reduction = Reduction::sum;
    int peer = -1;                 // root of a broadcast, gather or scatter, other side of a send or recv
    std::vector<BufferView> parts;     // all-reduce, broadcast, send, recv: one; all-to-all, gather, scatter: what leaves
    std::vector<BufferView> incoming;  // all-to-all, gather, scatter: what arrives
    uint8_t note = 0;              // all-to-all: the caller's word to every rank, 0 to max_note
    int device = -1;               // where all of its memory lies; −1: the CPU
    uintptr_t stream = 0;          // on a device: the caller's stream, which fills the memory; 0: the default one
    bool packed = false;           // all-reduce of u8: sums that no byte leaves, so wider words have the same
    bool even = false;             // all-to-all: every part of every rank has one length
    uint64_t id = 0;               // for whoever waits for it
    uint32_t sequence = 0;         // number among this lane's operations
};

}  // namespace terse::collectives
