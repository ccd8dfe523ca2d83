// parts[rank] ← the reduction of every rank's parts[rank]. The other parts are overwritten.
#include "algorithms/algorithms.h"

namespace terse::collectives {

void reduce_scatter(Wire& wire, const Operation& operation) {
    if (wire.size == 1) return;
    uint64_t bytes = 0, count = 0;
    for (const BufferView& part : operation.parts) {
        bytes += part.bytes();
        count += part.length;
    }
    if (is_small(bytes, wire.size))
        return reduce_all_pairs(wire, operation, operation.parts, operation.parts[wire.rank], count);
    ring(wire, operation, operation.parts, wire.size - 1);
}

}  // namespace terse::collectives
