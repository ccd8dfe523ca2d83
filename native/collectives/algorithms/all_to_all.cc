// parts[r] goes to rank r and arrives in its incoming[this rank]. Each pair of ranks may have another length, also 0:
// then the header still goes, with the caller's note.
#include <cstring>

#include "algorithms/algorithms.h"

namespace terse::collectives {

void all_to_all(Wire& wire, const Operation& operation) {
    const int rank = wire.rank;
    const auto &outgoing = operation.parts, &incoming = operation.incoming;
    const auto payload = [&](const BufferView& buffer) {
        Message message = message_of(operation, buffer.length, buffer.bytes());
        message.note = operation.note;
        return Payload{buffer, message};
    };
    if (outgoing[rank].bytes()) std::memmove(incoming[rank].data, outgoing[rank].data, outgoing[rank].bytes());
    wire.notes.assign(wire.size, operation.note);
    exchange_pairwise(
        wire, [&](int to) { return payload(outgoing[to]); }, [&](int from) { return payload(incoming[from]); },
        [&](int from, const Incoming& in) { wire.notes[from] = in.note(); });
}

}  // namespace terse::collectives
