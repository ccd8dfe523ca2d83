#include "collectives.h"

namespace terse::collectives {

Root::Root(Wire& wire, const Operation& operation, uint64_t count)
    : wire_(wire), message_(message_of(operation, count, 0, static_cast<uint32_t>(operation.peer))) {
    if (wire.size > 1) out_.emplace(wire, (wire.rank + 1) % wire.size, message_);
}

void Root::check() {
    if (!out_) return;
    Incoming(wire_, (wire_.rank - 1 + wire_.size) % wire_.size, message_);
    out_->finish();
}

}  // namespace terse::collectives
