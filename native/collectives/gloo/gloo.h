// Gloo's TCP transport as an Engine. gloo.cc where Gloo was found at build, no_gloo.cc where not.
#pragma once
#include <memory>
#include <string>

#include "../engine.h"

namespace terse::collectives {

// Listens on `address` (numeric). A connection whose other side acknowledges nothing for `silence` is given up. nullptr in a build
// without Gloo.
std::unique_ptr<MeetingEngine> make_gloo(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration silence);

}  // namespace terse::collectives
