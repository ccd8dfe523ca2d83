// An engine over plain TCP. It needs no library and no thread of its own: the threads that wait move the bytes.
//
// Three connections join two ranks: one for collectives, one for point-to-point operations, and one that carries no
// data, by which a dead machine is noticed (liveness.cc). On the first two, the sends of one side on its two slots are
// one stream of bytes, and the other side posts its receives in the same order (wire/message.h). So a receive reads
// directly into its buffer, and payload has no framing. Only a message on an even slot, whose length the receiver does
// not know, has its length in front of it, 4 bytes.
//
//   tcp.cc         the engine: its connections and their streams
//   connector.cc   connects all ranks: dialing, accepting, the handshake
//   transfer.cc    one send or receive, and the wait for it
//   stream.cc      moves the bytes of one direction of a connection
//   liveness.cc    notices that the other machine is gone
//   address.cc     where a rank listens, and the secret of its peer
#pragma once
#include <memory>
#include <string>

#include "engines/engine.h"

namespace terse::collectives {

// Listens on `address` (numeric) until all ranks are connected. A connection on which nothing is acknowledged for
// longer than an outage may take (outage.h) counts as broken. Throws std::runtime_error if it cannot listen.
std::unique_ptr<RendezvousEngine> make_tcp(int rank, int size, const std::string& address,
                                           Clock::duration connect_timeout, Clock::duration outage);

}  // namespace terse::collectives
