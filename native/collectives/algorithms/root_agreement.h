// Checks that all ranks of a broadcast, gather or scatter name the same root.
//
// If ranks name different roots, one of them could wait for a payload that is never sent. So every rank first sends the
// next rank a header with its root. The header is bare, unless a rank sends payload to the next one at once anyway. The
// first thing that a rank waits for is the header of the rank before it. If roots differ, two neighbours differ, and
// one of them sees it.
#pragma once
#include <optional>

#include "algorithms/algorithms.h"

namespace terse::collectives {

class RootAgreement {
public:
    // Before the rank waits for anything. `count`: elements, for error messages.
    RootAgreement(Wire& wire, const Operation& operation, uint64_t count);
    // After the rank has sent what it can send without waiting, and before any other wait.
    void check();

private:
    Wire& wire_;
    const Message message_;
    const int previous_;
    const bool receives_;
    std::optional<Outgoing> out_;
};

}  // namespace terse::collectives
