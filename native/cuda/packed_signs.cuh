#ifndef TERSE_PACKED_SIGNS_CUH
#define TERSE_PACKED_SIGNS_CUH
#include "kernels.cuh"

// Packed signs: of a tile of 128 floats a lane has four, one nibble of the word of lanes 8 (l / 8) .. + 7.
constexpr unsigned TILE = 4 * WARP;

// A word for every 8 lanes from their nibbles.
__device__ inline unsigned word_of_nibbles(unsigned nibble) {
    unsigned word = nibble << 4 * (lane_of_warp() % 8);
#pragma unroll
    for (unsigned stride = 1; stride < 8; stride *= 2) word |= __shfl_xor_sync(EVERY_LANE, word, stride);
    return word;
}

// The nibble of this lane in tile t of a unit.
__device__ inline unsigned nibble_at(const uint8_t *bits, size_t base, unsigned t) {
    return ((const unsigned *)bits)[base / 32 + 4 * t + lane_of_warp() / 8] >> 4 * (lane_of_warp() % 8);
}

__device__ inline unsigned bit_at(const uint8_t *bits, size_t i) { return bits[i / 8] >> i % 8 & 1; }

#endif
