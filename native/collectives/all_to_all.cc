// parts[r] goes to rank r, where it is incoming[this rank]. Lengths may differ from pair to pair, and be 0; the header goes all
// the same, with the caller's note.
#include <cstring>

#include "collectives.h"

namespace terse::collectives {

void all_to_all(Wire& wire, const Operation& operation) {
    const int rank = wire.rank;
    const auto &leaving = operation.parts, &arriving = operation.incoming;
    const auto parcel = [&](const BufferView& memory) {
        Message message = message_of(operation, memory.length, memory.bytes());
        message.note = operation.note;
        return Parcel{memory, message};
    };
    if (leaving[rank].bytes()) std::memmove(arriving[rank].data, leaving[rank].data, leaving[rank].bytes());
    wire.notes.assign(wire.size, operation.note);
    straight(
        wire, [&](int to) { return parcel(leaving[to]); }, [&](int from) { return parcel(arriving[from]); },
        [&](int from, const Incoming& in) { wire.notes[from] = in.note(); });
}

}  // namespace terse::collectives
