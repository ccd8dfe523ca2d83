// parts[r] of rank r reaches every rank, straight from its owner: the bytes of a ring, one latency instead of n − 1.
#include "collectives.h"

namespace terse::collectives {

void all_gather(Wire& wire, const Operation& operation) {
    const int n = wire.size, rank = wire.rank;
    const auto& parts = operation.parts;
    const uint32_t agreement = hash_lengths(parts);

    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    out.reserve(n - 1);
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {  // every rank begins with another peer
        out.emplace_back(wire, (rank + distance) % n, message_of(operation, parts[rank].length, parts[rank].bytes(), agreement));
        out.back().push(parts[rank].data, parts[rank].bytes());
    }
    for (int distance = 1; distance < n; distance++) {
        const int from = (rank - distance + n) % n;
        in.emplace_back(wire, from, message_of(operation, parts[from].length, parts[from].bytes(), agreement));
        in.back().post(parts[from].data, parts[from].bytes());
    }
    for (Incoming& i : in) i.finish();
    for (Outgoing& o : out) o.finish();
}

}  // namespace terse::collectives
