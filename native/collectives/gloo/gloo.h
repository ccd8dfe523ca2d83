// Gloo's TCP transport as an Engine. gloo.cc where Gloo was found at build, no_gloo.cc where not.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "../engine.h"

namespace terse::collectives {

// What each rank tells the others before it can connect; carried by the rendezvous, not by Gloo.
class GlooEngine : public Engine {
public:
    using Engine::Engine;
    virtual std::vector<std::string> addresses() const = 0;         // [peer]: where this rank listens for it; [rank] is empty
    virtual void set_peers(std::vector<std::string> addresses) = 0;  // [peer]: where it listens for this rank; before connect
};

// Listens on `address` (numeric). A connection whose other side acknowledges nothing for `silence` is given up. nullptr in a build
// without Gloo.
std::unique_ptr<GlooEngine> make_gloo(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration silence);

}  // namespace terse::collectives
