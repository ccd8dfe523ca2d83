// Packed signs on a GPU, for sign, scaled-sign and ternary.
#ifndef TERSE_SIGN_CUH
#define TERSE_SIGN_CUH
#include "packed_signs.cuh"
#include "launch.cuh"

constexpr unsigned ENCODED = 8 * TILE;  // floats of a warp's unit: 8 loads of 16 bytes per lane are on their way at
                                        // once
constexpr unsigned DECODED = 4 * TILE;  // half as many, each read and written

// sum += scale where the bit is 1, -= scale where it is 0, nothing where it is masked: a whole unit, 16-byte loads and
// stores.
__device__ inline void add_signs(float *sum, const uint8_t *bits, const uint8_t *hold, size_t base, float scale) {
    float4 *const sums = (float4 *)(sum + base);
    float4 v[4];
    unsigned plus[4], held[4];
#pragma unroll
    for (unsigned t = 0; t < 4; t++) {
        v[t] = sums[t * WARP + lane_of_warp()];
        plus[t] = nibble_at(bits, base, t);
        held[t] = hold ? nibble_at(hold, base, t) : 0;
    }
#pragma unroll
    for (unsigned t = 0; t < 4; t++) {
        if (!(held[t] & 1)) v[t].x += plus[t] & 1 ? scale : -scale;
        if (!(held[t] & 2)) v[t].y += plus[t] & 2 ? scale : -scale;
        if (!(held[t] & 4)) v[t].z += plus[t] & 4 ? scale : -scale;
        if (!(held[t] & 8)) v[t].w += plus[t] & 8 ? scale : -scale;
        sums[t * WARP + lane_of_warp()] = v[t];
    }
}

#endif
