// From one rank to another. Each peer and direction has a thread of its own, so these operations wait only for earlier
// ones of the same kind.
#include "algorithms/algorithms.h"

namespace terse::collectives {

void send(Wire& wire, const Operation& operation) {
    const BufferView& x = operation.parts[0];
    Message message = message_of(operation, x.length, x.bytes());
    message.kind = Kind::send;
    Outgoing out(wire, operation.peer, message);
    out.push(x.data, x.bytes());
    out.finish();
}

void recv(Wire& wire, const Operation& operation) {
    const BufferView& x = operation.parts[0];
    Message message = message_of(operation, x.length, x.bytes());
    message.kind = Kind::send;
    Incoming in(wire, operation.peer, message);
    in.post(x.data, x.bytes());
    in.finish();
}

}  // namespace terse::collectives
