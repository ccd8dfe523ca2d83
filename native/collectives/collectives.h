// The collectives, each written once over engine.h. All block the calling (wire) thread; all throw Failure.
#pragma once
#include "message.h"
#include "operation.h"

namespace terse::collectives {

void all_reduce(Wire& wire, const Operation& operation);
void reduce_scatter(Wire& wire, const Operation& operation);
void all_gather(Wire& wire, const Operation& operation);
void all_to_all(Wire& wire, const Operation& operation);
void broadcast(Wire& wire, const Operation& operation);
void send(Wire& wire, const Operation& operation);
void recv(Wire& wire, const Operation& operation);
void barrier(Wire& wire, const Operation& operation);

// ring.cc: chunks[r] belongs to rank r. After n − 1 steps it holds the reduction there; after 2n − 2 steps everywhere.
void ring(Wire& wire, const Operation& operation, const std::vector<Memory>& chunks, int steps);

// direct.cc: every rank sends chunks[r] to each rank r and adds what it gets in rank order; the sum replaces `into`. For small
// sums. `count` is what errors speak of: the elements that the caller gave.
void direct(Wire& wire, const Operation& operation, const std::vector<Memory>& chunks, const Memory& into, uint64_t count);

// Where direct is taken: few bytes, and few altogether.
inline bool is_small(uint64_t bytes, int ranks) { return bytes <= inline_bytes && bytes * (ranks - 1) <= 65536; }

inline Memory slice(const Memory& x, uint64_t from, uint64_t to) {
    return {static_cast<uint8_t*>(x.data) + from * bytes_of(x.dtype), static_cast<size_t>(to - from), x.dtype, x.on_cpu};
}

}  // namespace terse::collectives
