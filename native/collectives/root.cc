#include "collectives.h"

namespace terse::collectives {
namespace {

// Who sends payload at once anyway, and to the next rank: in a gather whoever stands before the root, else the root.
bool sends_payload(int rank, const Operation& operation, int n) { return operation.kind == Kind::gather ? (rank + 1) % n == operation.peer : rank == operation.peer; }

}  // namespace

Root::Root(Wire& wire, const Operation& operation, uint64_t count)
    : wire_(wire),
      message_(message_of(operation, count, 0, static_cast<uint32_t>(operation.peer))),
      before_((wire.rank - 1 + wire.size) % wire.size),
      hears_(wire.size > 1 && !sends_payload(before_, operation, wire.size)) {
    if (wire.size > 1 && !sends_payload(wire.rank, operation, wire.size)) out_.emplace(wire, (wire.rank + 1) % wire.size, message_);
}

void Root::check() {
    if (hears_) Incoming(wire_, before_, message_);
    if (out_) out_->finish();
}

}  // namespace terse::collectives
