// How a rank notices that another rank's machine is gone; the checks of a stream are in stream.h.
#pragma once
#include <algorithm>

#include "engines/engine.h"

namespace terse::collectives::tcp {

// How long a machine may stay silent. A little less than the silence after which the rendezvous calls a rank lost, so that finding
// the rank to blame takes no longer than that.
inline Clock::duration silence_limit_of(Clock::duration silence) { return std::max<Clock::duration>(silence * 4 / 5, std::chrono::seconds(4)); }

// Lets the kernel probe an idle connection, and end it after `silence_limit` without an answer.
void enable_keepalive(int fd, Clock::duration silence_limit);

}  // namespace terse::collectives::tcp
