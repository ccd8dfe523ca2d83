// Every rank sends its part directly to the root. Lengths may differ, and may be 0. Only the root knows all of them, so
// it compares each sender's header with its room for that rank.
#include <cstring>

#include "algorithms/root_agreement.h"

namespace terse::collectives {

void gather(Wire& wire, const Operation& operation) {
    const int n = wire.size, rank = wire.rank, root = operation.peer;
    const uint32_t agreement = static_cast<uint32_t>(root);
    const BufferView& mine = operation.parts[0];
    const auto& incoming = operation.incoming;

    RootAgreement root_agreement(wire, operation, 0);
    if (rank != root) {
        Outgoing out(wire, root, message_of(operation, mine.length, mine.bytes(), agreement));
        out.push(mine.data, mine.bytes());
        root_agreement.check();
        return out.finish();
    }
    root_agreement.check();
    std::vector<Incoming> in;
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {
        const int from = (rank - distance + n) % n;  // the previous rank first: see RootAgreement
        in.emplace_back(wire, from, message_of(operation, incoming[from].length, incoming[from].bytes(), agreement));
        in.back().post(incoming[from].data, incoming[from].bytes());
    }
    if (mine.bytes()) std::memmove(incoming[rank].data, mine.data, mine.bytes());
    for (Incoming& i : in) i.finish();
}

}  // namespace terse::collectives
