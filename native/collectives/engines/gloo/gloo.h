// Gloo's TCP transport as an Engine: gloo.cc if the build found Gloo, else no_gloo.cc.
#pragma once
#include <memory>
#include <string>

#include "engines/engine.h"

namespace terse::collectives {

// Listens on `address` (numeric). A connection whose other side acknowledges nothing for longer than an outage may take
// (outage.h) counts as broken. nullptr in a build without Gloo.
std::unique_ptr<RendezvousEngine> make_gloo(int rank, int size, const std::string& address,
                                            Clock::duration connect_timeout, Clock::duration outage);
bool has_gloo();

}  // namespace terse::collectives
