// What every rank gives reaches the root, straight from its owner; lengths may differ, and be 0. Only the root knows them all, so
// each sender's header is compared with what the root has room for.
#include <cstring>

#include "collectives.h"

namespace terse::collectives {

void gather(Wire& wire, const Operation& operation) {
    const int n = wire.size, rank = wire.rank, root = operation.peer;
    const uint32_t agreement = static_cast<uint32_t>(root);
    const BufferView& mine = operation.parts[0];
    const auto& arriving = operation.incoming;

    Root agreed(wire, operation, 0);
    if (rank != root) {
        Outgoing out(wire, root, message_of(operation, mine.length, mine.bytes(), agreement));
        out.push(mine.data, mine.bytes());
        agreed.check();
        return out.finish();
    }
    agreed.check();
    std::vector<Incoming> in;
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const int from = (rank - distance + n) % n;  // the rank before comes first: see Root
        in.emplace_back(wire, from, message_of(operation, arriving[from].length, arriving[from].bytes(), agreement));
        in.back().post(arriving[from].data, arriving[from].bytes());
    }
    if (mine.bytes()) std::memmove(arriving[rank].data, mine.data, mine.bytes());
    for (Incoming& i : in) i.finish();
}

}  // namespace terse::collectives
