// Dissemination barrier: in round k a rank sends to rank + 2ᵏ and receives from rank − 2ᵏ. After ⌈log₂ n⌉ rounds every
// rank has heard from all others, directly or through another rank. A message is a header without payload.
#include "algorithms/algorithms.h"

namespace terse::collectives {

void barrier(Wire& wire, const Operation& operation) {
    const int n = wire.size;
    std::vector<Outgoing> out;
    out.reserve(32);
    for (int distance = 1; distance < n; distance *= 2) {
        const Message message = message_of(operation, 0, 0, static_cast<uint32_t>(distance));
        out.emplace_back(wire, (wire.rank + distance) % n, message);
        Incoming(wire, (wire.rank - distance + n) % n, message);
    }
    for (Outgoing& o : out) o.finish();
}

}  // namespace terse::collectives
