// process.exit() runs no finalizer, so an exit handler stops all communicators before static objects are destroyed.
#pragma once
#include <memory>

#include "communicator/communicator.h"

namespace terse::collectives::binding {

void stop_at_exit(const std::shared_ptr<Communicator>& communicator);

// Adds a second exit handler, which runs before those that a library has added since the first one.
void stop_before_libraries();

}  // namespace terse::collectives::binding
