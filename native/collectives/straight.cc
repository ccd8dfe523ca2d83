// Every rank has something for each other rank, which goes straight there. Headers go to all at once. Payload goes in rounds: in round d
// from rank r to r + d, so that on every link one stream leaves and one arrives; were all to send to all at once, what comes together at
// a rank's link would be more than a switch holds for it. What is short goes at once, too.
#include <algorithm>

#include "collectives.h"

namespace terse::collectives {
namespace {

constexpr size_t short_bytes = 16384;

}  // namespace

void straight(Wire& wire, const std::function<Parcel(int)>& leaving, const std::function<Parcel(int)>& arriving, const std::function<void(int, const Incoming&)>& came) {
    const int n = wire.size, rank = wire.rank;
    const auto to = [&](int distance) { return (rank + distance) % n; };
    const auto from = [&](int distance) { return (rank - distance + n) % n; };
    const auto push = [](Outgoing& out, const Memory& what) { out.push(what.data, what.bytes()); };

    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    out.reserve(n - 1);
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const Parcel parcel = leaving(to(distance));
        out.emplace_back(wire, to(distance), parcel.message);
        if (parcel.memory.bytes() <= short_bytes) push(out.back(), parcel.memory);
    }
    for (int distance = 1; distance < n; distance++) {
        const Memory mine = leaving(to(distance)).memory;
        if (mine.bytes() > short_bytes) push(out[distance - 1], mine);
        const Parcel parcel = arriving(from(distance));
        in.emplace_back(wire, from(distance), parcel.message);
        in.back().post(parcel.memory.data, parcel.memory.bytes());
        came(from(distance), in.back());
        if (parcel.memory.bytes() > short_bytes) in.back().finish();
    }
    for (Incoming& each : in) each.finish();
    for (Outgoing& each : out) each.finish();
}

}  // namespace terse::collectives
