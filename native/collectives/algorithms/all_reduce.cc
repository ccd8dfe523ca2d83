// x ← x₀ ∘ x₁ ∘ … on every rank, with the same bits on all of them: each element is reduced in one order.
#include "algorithms/algorithms.h"

namespace terse::collectives {

void all_reduce(Wire& wire, const Operation& operation) {
    const BufferView& x = operation.parts[0];
    const uint64_t n = wire.size;
    if (n == 1) return;
    if (is_small(x.bytes(), wire.size))
        return reduce_all_pairs(wire, operation, std::vector<BufferView>(n, x), x, x.length);

    std::vector<BufferView> chunks;
    for (uint64_t r = 0; r < n; r++) chunks.push_back(slice(x, x.length * r / n, x.length * (r + 1) / n));
    ring(wire, operation, chunks, 2 * wire.size - 2);
}

}  // namespace terse::collectives
