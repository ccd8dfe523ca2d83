// x ← x₀ ∘ x₁ ∘ … on every rank, bit for bit the same: each element is added once, in one order, and its sum is handed out.
#include "collectives.h"

namespace terse::collectives {

void all_reduce(Wire& wire, const Operation& operation) {
    const BufferView& x = operation.parts[0];
    const uint64_t n = wire.size;
    if (n == 1) return;
    if (is_small(x.bytes(), wire.size)) return direct(wire, operation, std::vector<BufferView>(n, x), x, x.length);

    std::vector<BufferView> chunks;
    for (uint64_t r = 0; r < n; r++) chunks.push_back(slice(x, x.length * r / n, x.length * (r + 1) / n));
    ring(wire, operation, chunks, 2 * wire.size - 2);
}

}  // namespace terse::collectives
