// The ring. Rank r sends to r + 1 and receives from r − 1. In step t it sends chunk r − 1 − t and receives chunk
// r − 2 − t (mod n), which it sends on in step t + 1. In the first n − 1 steps it adds its own values to each chunk
// that arrives. So rank r gets the complete chunk r, always added in the order r + 1, r + 2, …, r. In the next n − 1
// steps the complete chunks go round.
//
// Chunks travel in segments, and a segment is sent on as soon as it is added, so adding overlaps with the transfers.
// Each rank sends one message: first n − 1 steps with all chunks but its own, then n − 1 with all but the next rank's.
#include <algorithm>

#include "algorithms/algorithms.h"
#include "algorithms/reduce.h"

namespace terse::collectives {
namespace {

constexpr size_t ahead = 3;  // receives that are posted early

struct Segment {
    BufferView buffer;
    bool adds;       // arrives in scratch and is added; otherwise it arrives in place
    bool completes;  // no rank adds to it after this one
};

// Small enough that a chunk has two segments, large enough that a transfer is worth its overhead.
size_t ring_segment(const std::vector<BufferView>& chunks, bool waits_for_room) {
    size_t largest = 0;
    for (const BufferView& chunk : chunks) largest = std::max(largest, chunk.bytes());
    const size_t wanted = largest / 2, rounded = wanted - wanted % 4096;
    return waits_for_room ? std::clamp(rounded, segment_bytes / 2, segment_bytes)
                          : std::clamp(rounded, least_ring_segment, most_ring_segment);
}

}  // namespace

void ring(Wire& wire, const Operation& operation, const std::vector<BufferView>& chunks, int steps) {
    const int n = wire.size, rank = wire.rank;
    const auto chunk = [&](int who, int back) -> const BufferView& { return chunks[((who - back) % n + 2 * n) % n]; };
    const size_t element = bytes_of(chunks[0].dtype),
                 limit = ring_segment(chunks, wire.engine.waits_for_room()) / element * element;
    const Reduce reduce = find_reduce(operation.reduction, chunks[0].dtype);

    uint64_t count = 0, out_bytes = 0, in_bytes = 0;
    for (const BufferView& c : chunks) count += c.length;
    for (int t = 0; t < steps; t++) {
        out_bytes += chunk(rank, 1 + t % n).bytes();
        in_bytes += chunk(rank, (2 + t) % n).bytes();
    }

    Message message = message_of(operation, count, out_bytes, hash_lengths(chunks));
    message.may_inline = false;
    Outgoing out(wire, (rank + 1) % n, message);
    message.bytes = in_bytes;
    Incoming in(wire, (rank - 1 + n) % n, message);

    // All segments that arrive, in order. The first `passed_on` of them are sent on.
    std::vector<Segment> arriving;
    size_t passed_on = 0;
    const auto cut = [&](const BufferView& whole, auto&& each) {
        for (size_t at = 0; at < whole.bytes(); at += limit)
            each(slice(whole, at / element, std::min(whole.length, (at + limit) / element)));
    };
    for (int t = 0; t < steps; t++) {
        cut(chunk(rank, (2 + t) % n), [&](const BufferView& s) { arriving.push_back({s, t < n - 1, t == n - 2}); });
        if (t < steps - 1) passed_on = arriving.size();
    }
    uint8_t* scratch = wire.scratch(ahead * limit);
    const auto destination = [&](size_t i) {
        return arriving[i].adds ? static_cast<void*>(scratch + i % ahead * limit) : arriving[i].buffer.data;
    };

    cut(chunk(rank, 1), [&](const BufferView& s) { out.push(s.data, s.bytes()); });
    for (size_t i = 0; i < std::min(ahead, arriving.size()); i++) in.post(destination(i), arriving[i].buffer.bytes());
    for (size_t i = 0; i < arriving.size(); i++) {
        const BufferView& here = arriving[i].buffer;
        in.next();
        if (arriving[i].adds) reduce(here.data, destination(i), here.length);
        if (arriving[i].completes) complete(operation.reduction, here.dtype, here.data, here.length, n);
        if (i + ahead < arriving.size()) in.post(destination(i + ahead), arriving[i + ahead].buffer.bytes());
        if (i < passed_on) out.push(here.data, here.bytes());
    }
    out.finish();
}

}  // namespace terse::collectives
