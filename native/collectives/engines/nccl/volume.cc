#include "engines/nccl/volume.h"

namespace terse::nccl {

using collectives::Kind;

Volume volume_of(const collectives::Operation& operation, int rank, int size) {
    const auto& parts = operation.parts;
    const uint64_t n = size, next = (rank + 1) % n;
    if (n == 1) return {};
    uint64_t all = 0;
    for (const BufferView& part : parts) all += part.bytes();
    switch (operation.kind) {
        case Kind::all_reduce: {
            const uint64_t length = parts[0].length, bytes = bytes_of(parts[0].dtype);
            const auto chunk = [&](uint64_t r) { return (length * (r + 1) / n - length * r / n) * bytes; };
            return {2 * all - chunk(rank) - chunk(next), 1, 0};
        }
        case Kind::reduce_scatter: return {all - parts[rank].bytes(), 1, 0};
        case Kind::all_gather: return {all - parts[next].bytes(), 1, 0};
        case Kind::all_to_all: return {all - parts[rank].bytes(), n - 1, n - 1};
        case Kind::broadcast: return static_cast<int>(next) == operation.peer ? Volume{} : Volume{all, 1, 0};
        case Kind::gather: return rank == operation.peer ? Volume{} : Volume{all, 1, 0};
        case Kind::scatter: return rank == operation.peer ? Volume{all - parts[rank].bytes(), n - 1, 0} : Volume{};
        case Kind::send: return {all, 1, 0};
        case Kind::barrier: return {0, 1, 0};
        case Kind::recv:
        case Kind::copy:
        case Kind::register_buffer:
        case Kind::deregister_buffer:
        case Kind::split:
        case Kind::connect: return {};
    }
    return {};
}

}  // namespace terse::nccl
