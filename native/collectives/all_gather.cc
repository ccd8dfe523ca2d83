// parts[r] of rank r reaches every rank, straight from its owner: the bytes of a ring, one latency instead of n − 1.
#include "collectives.h"

namespace terse::collectives {

void all_gather(Wire& wire, const Operation& operation) {
    const auto& parts = operation.parts;
    const uint32_t agreement = hash_lengths(parts);
    const auto parcel = [&](int owner) { return Parcel{parts[owner], message_of(operation, parts[owner].length, parts[owner].bytes(), agreement)}; };
    straight(
        wire, [&](int) { return parcel(wire.rank); }, parcel);
}

}  // namespace terse::collectives
