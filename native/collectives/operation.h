// What JavaScript asks for, as the wire threads see it.
#pragma once
#include <cstdint>
#include <vector>

#include "terse/memory.h"

namespace terse::collectives {

enum class Kind : uint8_t { connect, all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, recv, barrier, gather, scatter };
enum class Reduction : uint8_t { sum, prod, min, max, mean };

inline const char* name_of(Kind kind) {
    static const char* names[] = {"connect", "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "send", "send", "barrier", "gather", "scatter"};
    return kind <= Kind::scatter ? names[static_cast<int>(kind)] : "an unknown operation";
}

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
    std::vector<Memory> parts;     // all-reduce, broadcast, send, recv: one; all-to-all, gather, scatter: what leaves
    std::vector<Memory> incoming;  // all-to-all, gather, scatter: what arrives
    uint8_t note = 0;              // all-to-all: the caller's word to every rank, 0 to max_note
    uint64_t id = 0;               // for whoever waits for it
    uint32_t sequence = 0;         // number among this lane's operations
};

}  // namespace terse::collectives
