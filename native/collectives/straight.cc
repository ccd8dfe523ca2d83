// Every rank has something for each other rank, which goes straight there. Headers go to all at once. Payload goes in rounds: in round d
// from rank r to r + d, so that on every link one stream leaves and one arrives; were all to send to all at once, what comes together at
// a rank's link would be more than a switch holds for it. A round begins when all but the tail of the one before has come, so that the
// link stays busy however far the ranks are from each other. What is short goes at once, too.
#include <algorithm>

#include "collectives.h"

namespace terse::collectives {
namespace {

constexpr size_t short_bytes = 16384;
constexpr size_t tail_bytes = 32768;  // 2.6 ms at 100 Mbit/s

// Sent and posted apart from the tail.
size_t head_of(const BufferView& memory) { return memory.bytes() > tail_bytes ? memory.bytes() - tail_bytes : 0; }

}  // namespace

void straight(Wire& wire, const std::function<Parcel(int)>& leaving, const std::function<Parcel(int)>& arriving, const std::function<void(int, const Incoming&)>& came) {
    const int n = wire.size, rank = wire.rank;
    const auto to = [&](int distance) { return (rank + distance) % n; };
    const auto from = [&](int distance) { return (rank - distance + n) % n; };
    const auto in_pieces = [](const BufferView& memory, auto&& each) {
        auto* data = static_cast<uint8_t*>(memory.data);
        const size_t head = head_of(memory);
        each(data, head);
        each(data + head, memory.bytes() - head);
    };
    const auto push = [&](Outgoing& out, const BufferView& what) { in_pieces(what, [&](uint8_t* data, size_t bytes) { out.push(data, bytes); }); };

    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    out.reserve(n - 1);
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const Parcel parcel = leaving(to(distance));
        out.emplace_back(wire, to(distance), parcel.message);
        if (parcel.memory.bytes() <= short_bytes) push(out.back(), parcel.memory);
    }
    const auto expect = [&](int distance) {
        const Parcel parcel = arriving(from(distance));
        in.emplace_back(wire, from(distance), parcel.message);
        in_pieces(parcel.memory, [&](uint8_t* data, size_t bytes) { in.back().post(data, bytes); });
        came(from(distance), in.back());
    };
    int expected = 0;
    for (int distance = 1; distance < n; distance++) {
        const BufferView mine = leaving(to(distance)).memory;
        if (mine.bytes() > short_bytes) push(out[distance - 1], mine);
        // The news that there is room would wait behind a round's payload, on a link that is busy.
        while (expected < (wire.engine.waits_for_room() ? n - 1 : distance)) expect(++expected);
        for (size_t at = 0; at < head_of(arriving(from(distance)).memory); at += segment_bytes) in[distance - 1].next();
    }
    for (Incoming& each : in) each.finish();
    for (Outgoing& each : out) each.finish();
}

}  // namespace terse::collectives
