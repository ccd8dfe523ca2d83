// An operation from the arguments of JavaScript's `operate`.
#pragma once
#include <napi.h>

#include <memory>
#include <vector>

#include "communicator/communicator.h"

namespace terse::collectives::binding {

// (kind, reduction, peer, parts, incoming, note, guarantees). `guarantees`: 1, packed; 2, even; see operation.h. Throws
// Napi errors. TypeScript reports wrong arguments with better messages; these checks only keep operations from touching
// memory that is not theirs. `pinned` gets the memory of the typed arrays, which the operation needs until it
// completes.
Operation read_operation(const Napi::CallbackInfo& info, const Communicator& communicator,
                         std::vector<std::shared_ptr<void>>& pinned);

}  // namespace terse::collectives::binding
