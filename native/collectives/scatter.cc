// What the root has for each rank goes straight there; lengths may differ, and be 0.
#include <cstring>

#include "collectives.h"

namespace terse::collectives {

void scatter(Wire& wire, const Operation& operation) {
    const int n = wire.size, rank = wire.rank, root = operation.peer;
    const uint32_t agreement = static_cast<uint32_t>(root);
    const auto& leaving = operation.parts;
    const BufferView& mine = operation.incoming[0];

    Root agreed(wire, operation, 0);
    if (rank != root) {
        agreed.check();
        Incoming in(wire, root, message_of(operation, mine.length, mine.bytes(), agreement));
        in.post(mine.data, mine.bytes());
        return in.finish();
    }
    std::vector<Outgoing> out;
    out.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const int to = (rank + distance) % n;
        // Once Gloo may send, its thread holds the lock that pushing takes, and this rank's own part, which is copied meanwhile, would
        // wait: so it may when all is pushed.
        out.emplace_back(wire, to, message_of(operation, leaving[to].length, leaving[to].bytes(), agreement), wire.engine.waits_for_room());
        out.back().push(leaving[to].data, leaving[to].bytes());
    }
    if (mine.bytes()) std::memmove(mine.data, leaving[rank].data, mine.bytes());
    agreed.check();
    for (Outgoing& o : out) o.finish();
}

}  // namespace terse::collectives
