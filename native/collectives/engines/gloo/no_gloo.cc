#include "engines/gloo/gloo.h"

namespace terse::collectives {

std::unique_ptr<RendezvousEngine> make_gloo(int, int, const std::string&, Clock::duration, Clock::duration) {
    return nullptr;
}
bool has_gloo() { return false; }

}  // namespace terse::collectives
