// Ranks that are threads of one process. A send and the receive that matches it are one memcpy.
#pragma once
#include <memory>
#include <vector>

#include "engines/engine.h"

namespace terse::collectives {

std::vector<std::unique_ptr<Engine>> make_loopback(int size);

}  // namespace terse::collectives
