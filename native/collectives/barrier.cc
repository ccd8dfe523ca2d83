// Dissemination: in round k tell rank + 2ᵏ and hear from rank − 2ᵏ; after ⌈log₂ n⌉ rounds everybody has heard from everybody.
// A message is a bare header.
#include "collectives.h"

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
