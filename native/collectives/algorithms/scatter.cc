// The root sends each rank its part directly. Lengths may differ, and may be 0.
#include <cstring>

#include "algorithms/root_agreement.h"

namespace terse::collectives {

void scatter(Wire& wire, const Operation& operation) {
    const int n = wire.size, rank = wire.rank, root = operation.peer;
    const uint32_t agreement = static_cast<uint32_t>(root);
    const auto& outgoing = operation.parts;
    const BufferView& mine = operation.incoming[0];

    RootAgreement root_agreement(wire, operation, 0);
    if (rank != root) {
        root_agreement.check();
        Incoming in(wire, root, message_of(operation, mine.length, mine.bytes(), agreement));
        in.post(mine.data, mine.bytes());
        return in.finish();
    }
    std::vector<Outgoing> out;
    out.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const int to = (rank + distance) % n;
        // Gloo's thread sends once the header is out, and holds the lock that `push` takes; the copy of this rank's own
        // part would then start late. So with Gloo the header goes last.
        out.emplace_back(wire, to, message_of(operation, outgoing[to].length, outgoing[to].bytes(), agreement),
                         wire.engine.waits_for_room());
        out.back().push(outgoing[to].data, outgoing[to].bytes());
    }
    if (mine.bytes()) std::memmove(mine.data, outgoing[rank].data, mine.bytes());
    root_agreement.check();
    for (Outgoing& o : out) o.finish();
}

}  // namespace terse::collectives
