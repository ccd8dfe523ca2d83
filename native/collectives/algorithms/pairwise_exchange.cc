// Pairwise exchange: every rank sends a payload directly to each other rank. Headers, and short payloads with them, go to all ranks
// at once. Longer payloads go in rounds: in round d rank r sends to r + d. So each link carries one stream out and one in. If all
// ranks sent to all at once, more data would meet at one rank's link than a switch can buffer. A round begins when all but the tail
// of the previous one has arrived, so the link stays busy whatever the latency.
#include <algorithm>

#include "algorithms/algorithms.h"

namespace terse::collectives {
namespace {

constexpr size_t short_bytes = 16384;
constexpr size_t tail_bytes = 32768;  // 2.6 ms at 100 Mbit/s

// Bytes before the tail. Head and tail are sent and received separately.
size_t head_of(const BufferView& buffer) { return buffer.bytes() > tail_bytes ? buffer.bytes() - tail_bytes : 0; }

}  // namespace

void exchange_pairwise(Wire& wire, const std::function<Payload(int)>& outgoing, const std::function<Payload(int)>& incoming, const std::function<void(int, const Incoming&)>& on_header) {
    const int n = wire.size, rank = wire.rank;
    const auto to = [&](int distance) { return (rank + distance) % n; };
    const auto from = [&](int distance) { return (rank - distance + n) % n; };
    const auto in_pieces = [](const BufferView& buffer, auto&& each) {
        auto* data = static_cast<uint8_t*>(buffer.data);
        const size_t head = head_of(buffer);
        each(data, head);
        each(data + head, buffer.bytes() - head);
    };
    const auto push = [&](Outgoing& out, const BufferView& buffer) { in_pieces(buffer, [&](uint8_t* data, size_t bytes) { out.push(data, bytes); }); };

    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    out.reserve(n - 1);
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const Payload payload = outgoing(to(distance));
        out.emplace_back(wire, to(distance), payload.message);
        if (payload.buffer.bytes() <= short_bytes) push(out.back(), payload.buffer);
    }
    const auto expect = [&](int distance) {
        const Payload payload = incoming(from(distance));
        in.emplace_back(wire, from(distance), payload.message);
        in_pieces(payload.buffer, [&](uint8_t* data, size_t bytes) { in.back().post(data, bytes); });
        on_header(from(distance), in.back());
    };
    int expected = 0;
    for (int distance = 1; distance < n; distance++) {
        const BufferView mine = outgoing(to(distance)).buffer;
        if (mine.bytes() > short_bytes) push(out[distance - 1], mine);
        // If the sender waits for room, the message that announces it would wait behind a round's payload on a busy link.
        while (expected < (wire.engine.waits_for_room() ? n - 1 : distance)) expect(++expected);
        for (size_t at = 0; at < head_of(incoming(from(distance)).buffer); at += segment_bytes) in[distance - 1].next();
    }
    for (Incoming& each : in) each.finish();
    for (Outgoing& each : out) each.finish();
}

}  // namespace terse::collectives
