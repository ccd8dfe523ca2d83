// The parts of the kernels of top-k that the checks need too: which floats are sampled, so that a check can make the
// sample misleading, and how a tile gets the counts of the tiles before it.
#ifndef TERSE_TOP_K_CUH
#define TERSE_TOP_K_CUH
#include "launch.cuh"
#include "top_k.h"

#ifndef TERSE_SHORT_INDICES
#define TERSE_SHORT_INDICES \
    ((size_t)1 << 32)  // of so many floats indices have 32 bits; the emulated checks take fewer, so that both kinds are
                       // chosen
#endif

// One sample of each stretch; none of a short vector, where reading all takes no longer.
inline size_t top_k_samples(size_t n) { return n < (1 << 16) ? 0 : n / 64 < (1 << 16) ? n / 64 : 1 << 16; }

template <class T>
__device__ T fresh(const T *at) {
    return *(const volatile T *)at;
}  // what another block has written in this launch

// The state of a tile, in the upper two bits of its word: its own count, or the count of all elements up to its end.
constexpr unsigned long long TILE_AGGREGATE = 1ull << 62, TILE_PREFIX = 2ull << 62, TILE_NUMBER = TILE_AGGREGATE - 1;

// The count before the tile (Merrill and Garland 2016, "Single-pass Parallel Prefix Scan with Decoupled Look-back"). A
// warp; tiles start in order, so the tiles before this one have started and will publish their counts.
__device__ inline unsigned long long before_tile(unsigned long long *states, size_t tile, unsigned long long own) {
    const unsigned lane = lane_of_warp();
    const auto publish = [&](unsigned long long word) {
        if (lane == 0) *(volatile unsigned long long *)(states + tile) = word;
    };
    if (tile) publish(TILE_AGGREGATE | own);
    unsigned long long before = 0;
    for (size_t behind = tile; behind;) {
        unsigned long long word;
        do word = lane < behind ? fresh(states + behind - 1 - lane) : TILE_PREFIX;
        while (!__all_sync(EVERY_LANE, word > TILE_NUMBER));
        const unsigned whole = __ballot_sync(EVERY_LANE, word >= TILE_PREFIX),
                       nearest = whole ? __ffs((int)whole) - 1 : WARP - 1;
        unsigned long long sum = lane <= nearest ? word & TILE_NUMBER : 0;
#pragma unroll
        for (unsigned stride = WARP / 2; stride; stride /= 2) sum += __shfl_xor_sync(EVERY_LANE, sum, stride);
        before += sum;
        behind = whole ? 0 : behind - WARP;
    }
    publish(TILE_PREFIX | (before + own));
    return before;
}

#endif
