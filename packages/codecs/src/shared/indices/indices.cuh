// indices.h on a GPU: reads the indices of the kept elements from the wire.
#ifndef TERSE_INDICES_CUH
#define TERSE_INDICES_CUH
#include "launch.cuh"

// Index j of `width` bits; all of them take `bytes`.
__device__ inline size_t index_at(const uint8_t *indices, size_t bytes, size_t j, unsigned width) {
    const size_t bit = j * width, at = bit / 8;
    uint64_t word = 0;
    for (unsigned b = 0; 8 * b < width + bit % 8 && at + b < bytes; b++) word |= (uint64_t)indices[at + b] << 8 * b;
    return word >> bit % 8 & (((uint64_t)1 << width) - 1);
}

#endif
