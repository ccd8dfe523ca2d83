// Pairwise exchange: every rank sends a payload directly to each other rank. Headers, and short payloads with them, go
// to all ranks at once. Longer payloads go in rounds: in round d rank r sends to r + d. So each link carries one stream
// out and one in. If all ranks sent to all at once, more data would meet at one rank's link than a switch can buffer. A
// round begins when all but the tail of the previous one has arrived, so the link stays busy at the latency of a local
// network. To a rank that is far away each round would take the latency, where its payload may take a part of it: there
// all rounds begin at once, and payloads leave with the headers unless a go-ahead is to come before one.
//
// Ranks that begin at different times would still meet at a link. So behind a switch a long payload waits, from the
// second round on, until its receiver lets it go ahead: when all but the tail of the receiver's own previous round has
// arrived. Four ranks on links of 10 Mbit/s lost a tenth of their packets without it.
#include <algorithm>

#include "algorithms/algorithms.h"

namespace terse::collectives {
namespace {

constexpr size_t short_bytes = 16384;
constexpr size_t tail_bytes = 32768;  // 2.6 ms at 100 Mbit/s
constexpr size_t long_bytes = 65536;  // what a switch can be expected to hold

// Bytes before the tail. Head and tail are sent and received separately.
size_t head_of(const BufferView& buffer) { return buffer.bytes() > tail_bytes ? buffer.bytes() - tail_bytes : 0; }

}  // namespace

void exchange_pairwise(Wire& wire, const std::function<Payload(int)>& outgoing,
                       const std::function<Payload(int)>& incoming,
                       const std::function<void(int, const Incoming&)>& on_header) {
    const int n = wire.size, rank = wire.rank;
    const auto to = [&](int distance) { return (rank + distance) % n; };
    const auto from = [&](int distance) { return (rank - distance + n) % n; };
    const auto in_pieces = [](const BufferView& buffer, auto&& each) {
        auto* data = static_cast<uint8_t*>(buffer.data);
        const size_t head = head_of(buffer);
        each(data, head);
        each(data + head, buffer.bytes() - head);
    };
    const auto push = [&](Outgoing& out, const BufferView& buffer) {
        in_pieces(buffer, [&](uint8_t* data, size_t bytes) { out.push(data, bytes); });
    };

    const auto leaves_at_once = [&](int peer) {
        const size_t bytes = outgoing(peer).buffer.bytes(), back = incoming(peer).buffer.bytes();
        return bytes <= short_bytes || (wire.engine.is_far(peer) &&
                                        (!wire.engine.is_behind_switch(peer) || std::max(bytes, back) <= long_bytes));
    };

    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    out.reserve(n - 1);
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const Payload payload = outgoing(to(distance));
        out.emplace_back(wire, to(distance), payload.message);
        if (leaves_at_once(to(distance))) push(out.back(), payload.buffer);
    }
    const auto wait_for_header = [&](int distance) {
        in.emplace_back(wire, from(distance), incoming(from(distance)).message);
        on_header(from(distance), in.back());
    };
    const auto post = [&](int distance) {
        in_pieces(incoming(from(distance)).buffer,
                  [&](uint8_t* data, size_t bytes) { in[distance - 1].post(data, bytes); });
    };
    // Both ranks know the sizes of both payloads. A short payload in the other direction leaves before its round. Its
    // receiver would expect the go-ahead before it and get it after it, so in that case nothing waits.
    const auto needs_go_ahead = [&](int distance, int peer, size_t bytes, size_t back) {
        return distance > 1 && bytes > long_bytes && wire.engine.is_behind_switch(peer) &&
               (back <= inline_bytes || back > short_bytes);
    };
    std::vector<std::unique_ptr<Transfer>> go_aheads;
    int expected = 0;
    for (int distance = 1; distance < n; distance++) {
        const auto bytes_to = [&](int peer) { return outgoing(peer).buffer.bytes(); };
        const auto bytes_from = [&](int peer) { return incoming(peer).buffer.bytes(); };
        const int receiver = to(distance), sender = from(distance);
        const BufferView mine = outgoing(receiver).buffer;
        const bool lets_go_ahead = needs_go_ahead(distance, sender, bytes_from(sender), bytes_to(sender));
        if (lets_go_ahead) {  // a header that is not the expected one is an error, and its sender waits for nothing
            wait_for_header(++expected);
            go_aheads.push_back(wire.send_go_ahead(sender));
        }
        if (needs_go_ahead(distance, receiver, mine.bytes(), bytes_from(receiver))) wire.wait_for_go_ahead(receiver);
        if (lets_go_ahead) post(distance);
        if (!leaves_at_once(receiver)) push(out[distance - 1], mine);
        // If the sender waits for room, the message that announces it would wait behind a round's payload on a busy
        // link.
        while (expected < (wire.engine.waits_for_room() ? n - 1 : distance)) {
            wait_for_header(++expected);
            post(expected);
        }
        if (wire.engine.is_far(sender)) continue;
        for (size_t at = 0; at < head_of(incoming(sender).buffer); at += segment_bytes) in[distance - 1].next();
    }
    for (auto& each : go_aheads) each->wait(wire.deadline);
    for (Incoming& each : in) each.finish();
    for (Outgoing& each : out) each.finish();
}

}  // namespace terse::collectives
