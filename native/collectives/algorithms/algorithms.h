// The collectives and point-to-point operations, each written once over a Wire. All block the calling wire thread and
// throw Failure.
#pragma once
#include <functional>

#include "communicator/operation.h"
#include "wire/message.h"

namespace terse::collectives {

void all_reduce(Wire& wire, const Operation& operation);
void reduce_scatter(Wire& wire, const Operation& operation);
void all_gather(Wire& wire, const Operation& operation);
void all_to_all(Wire& wire, const Operation& operation);
void broadcast(Wire& wire, const Operation& operation);
void gather(Wire& wire, const Operation& operation);
void scatter(Wire& wire, const Operation& operation);
void send(Wire& wire, const Operation& operation);
void recv(Wire& wire, const Operation& operation);
void barrier(Wire& wire, const Operation& operation);

// ring.cc: chunks[r] belongs to rank r. After n − 1 steps rank r holds its reduction; after 2n − 2 steps every rank
// holds all of them.
void ring(Wire& wire, const Operation& operation, const std::vector<BufferView>& chunks, int steps);

// all_pairs.cc: every rank sends chunks[r] to each rank r and adds what it receives, in rank order; the sum replaces
// `into`. `count`: the elements that the caller gave, for error messages.
void reduce_all_pairs(Wire& wire, const Operation& operation, const std::vector<BufferView>& chunks,
                      const BufferView& into, uint64_t count);

// The sums that take reduce_all_pairs: short vectors, and few bytes in total.
inline bool is_small(uint64_t bytes, int ranks) {
    return bytes <= inline_bytes && bytes * (ranks - 1) <= small_sum_bytes;
}

// pairwise_exchange.cc: sends outgoing(rank) to each other rank and receives incoming(rank) from it; `on_header` is
// called for each header that arrives.
struct Payload {
    BufferView buffer;
    Message message;
};
void exchange_pairwise(
    Wire& wire, const std::function<Payload(int)>& outgoing, const std::function<Payload(int)>& incoming,
    const std::function<void(int, const Incoming&)>& on_header = [](int, const Incoming&) {});

inline BufferView slice(const BufferView& x, uint64_t from, uint64_t to) {
    return {static_cast<uint8_t*>(x.data) + from * bytes_of(x.dtype), static_cast<size_t>(to - from), x.dtype,
            x.on_cpu};
}

}  // namespace terse::collectives
