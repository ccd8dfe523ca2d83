// An operation from the arguments of JavaScript's `operate`.
#pragma once
#include <napi.h>

#include "communicator/communicator.h"

namespace terse::collectives::binding {

// (kind, reduction, peer, parts, incoming, note, guarantees). `guarantees`: 1, packed; 2, even; see operation.h. Throws Napi
// errors. TypeScript reports wrong arguments with better messages; these checks only keep operations from touching memory that is
// not theirs.
Operation read_operation(const Napi::CallbackInfo& info, const Communicator& communicator);

}  // namespace terse::collectives::binding
