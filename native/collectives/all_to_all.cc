// parts[r] goes to rank r, where it is incoming[this rank]. Lengths may differ from pair to pair, and be 0; the header goes all
// the same, with the caller's note.
#include <cstring>

#include "collectives.h"

namespace terse::collectives {

void all_to_all(Wire& wire, const Operation& operation) {
    const int n = wire.size, rank = wire.rank;
    const auto &leaving = operation.parts, &arriving = operation.incoming;

    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    out.reserve(n - 1);
    in.reserve(n - 1);
    for (int distance = 1; distance < n; distance++) {  // every rank begins with another peer
        const int to = (rank + distance) % n;
        Message message = message_of(operation, leaving[to].length, leaving[to].bytes());
        message.note = operation.note;
        out.emplace_back(wire, to, message);
        out.back().push(leaving[to].data, leaving[to].bytes());
    }
    if (leaving[rank].bytes()) std::memmove(arriving[rank].data, leaving[rank].data, leaving[rank].bytes());
    wire.notes.assign(n, operation.note);
    for (int distance = 1; distance < n; distance++) {
        const int from = (rank - distance + n) % n;
        in.emplace_back(wire, from, message_of(operation, arriving[from].length, arriving[from].bytes()));
        in.back().post(arriving[from].data, arriving[from].bytes());
        wire.notes[from] = in.back().note();
    }
    for (Incoming& i : in) i.finish();
    for (Outgoing& o : out) o.finish();
}

}  // namespace terse::collectives
