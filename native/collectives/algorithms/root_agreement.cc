#include "algorithms/root_agreement.h"

namespace terse::collectives {
namespace {

// Whether `rank` sends payload to the next rank without waiting: in a gather the rank before the root, else the root.
bool sends_payload(int rank, const Operation& operation, int n) {
    return operation.kind == Kind::gather ? (rank + 1) % n == operation.peer : rank == operation.peer;
}

}  // namespace

RootAgreement::RootAgreement(Wire& wire, const Operation& operation, uint64_t count)
    : wire_(wire),
      message_(message_of(operation, count, 0, static_cast<uint32_t>(operation.peer))),
      previous_((wire.rank - 1 + wire.size) % wire.size),
      receives_(wire.size > 1 && !sends_payload(previous_, operation, wire.size)) {
    if (wire.size > 1 && !sends_payload(wire.rank, operation, wire.size))
        out_.emplace(wire, (wire.rank + 1) % wire.size, message_);
}

void RootAgreement::check() {
    if (receives_) Incoming(wire_, previous_, message_);
    if (out_) out_->finish();
}

}  // namespace terse::collectives
