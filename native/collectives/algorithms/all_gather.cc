// Rank r sends its parts[r] directly to every other rank: the same bytes as a ring, and one latency instead of n − 1.
#include "algorithms/algorithms.h"

namespace terse::collectives {

void all_gather(Wire& wire, const Operation& operation) {
    const auto& parts = operation.parts;
    const uint32_t agreement = hash_lengths(parts);
    const auto part_of = [&](int owner) {
        return Payload{parts[owner], message_of(operation, parts[owner].length, parts[owner].bytes(), agreement)};
    };
    exchange_pairwise(wire, [&](int) { return part_of(wire.rank); }, part_of);
}

}  // namespace terse::collectives
