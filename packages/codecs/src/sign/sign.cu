// sign on a GPU: bit i of the wire = x[i] > 0, or x[i] = 0 and zeros count as plus. x (n) -> wire (ceil(n / 8) bytes).
//
//   a warp's 1024 floats = 8 tiles of 128; in each, lane l has floats 4 l .. 4 l + 3, one nibble of the word of lanes 8 (l / 8) .. + 7
#include "launch.cuh"
#include "sign.h"

constexpr unsigned TILE = 4 * WARP;
constexpr unsigned ENCODED = 8 * TILE;  // floats of a warp's unit: 8 loads of 16 bytes a lane are on their way at once
constexpr unsigned DECODED = 4 * TILE;  // half as many, each read and written

// Zeros are plus where `least` is 0, and minus where it is the smallest denormal: x > 0 says the same as x >= 2^-149.
template <bool ALIGNED>
__global__ void __launch_bounds__(256) sign_encode(uint8_t *wire, const float *x, size_t n, const uint8_t *hold, float least, uint64_t *bad) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * ENCODED; base < n; base += all_warps() * ENCODED) {
        unsigned word = 0, most = 0;
        if (ALIGNED && base + ENCODED <= n) {
            float4 v[8];
#pragma unroll
            for (unsigned t = 0; t < 8; t++) v[t] = ((const float4 *)(x + base))[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < 8; t++) {
                const float of[4] = {v[t].x, v[t].y, v[t].z, v[t].w};
                unsigned tile = 0;
#pragma unroll
                for (unsigned k = 0; k < 4; k++) {
                    tile |= (unsigned)(of[k] >= least) << k;
                    most = magnitude_bits(of[k]) > most ? magnitude_bits(of[k]) : most;
                }
                tile <<= 4 * (lane % 8);
#pragma unroll
                for (unsigned stride = 1; stride < 8; stride *= 2) tile |= __shfl_xor_sync(EVERY_LANE, tile, stride);
                if (lane % 8 == t) word = tile;  // the lane keeps the word of tile lane % 8, lanes 8 (lane / 8) .. + 7
            }
            const size_t at = base / 32 + lane % 8 * 4 + lane / 8;
            if (hold) word &= ~((const unsigned *)hold)[at];
            ((unsigned *)wire)[at] = word;
        } else {
            for (unsigned t = 0; t < 32; t++) {
                const size_t i = base + t * WARP + lane;
                const float value = i < n ? x[i] : -1.0f;
                most = magnitude_bits(value) > most ? magnitude_bits(value) : most;
                const unsigned ballot = __ballot_sync(EVERY_LANE, value >= least);
                if (lane == t) word = ballot;
            }
            const size_t at = base / 8 + 4 * lane;
            for (unsigned b = 0; b < 4 && 8 * (at + b) < n; b++) {
                const uint8_t byte = (uint8_t)(word >> 8 * b);
                wire[at + b] = hold ? (uint8_t)(byte & ~hold[at + b]) : byte;
            }
        }
        if (most >= INFINITE)  // rare: then who has it looks at all that it can have read
            for (size_t i = base; i < n && i < base + ENCODED; i++)
                if (magnitude_bits(x[i]) >= INFINITE) {
                    refuse(bad, i);
                    break;
                }
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(256) sign_decode_add(float *sum, const uint8_t *wire, size_t n, const uint8_t *hold, float scale) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * DECODED; base < n; base += all_warps() * DECODED) {
        if (ALIGNED && base + DECODED <= n) {
            float4 *const sums = (float4 *)(sum + base);
            float4 v[4];
            unsigned plus[4], held[4];
#pragma unroll
            for (unsigned t = 0; t < 4; t++) {
                v[t] = sums[t * WARP + lane];
                plus[t] = ((const unsigned *)wire)[base / 32 + 4 * t + lane / 8] >> 4 * (lane % 8);
                held[t] = hold ? ((const unsigned *)hold)[base / 32 + 4 * t + lane / 8] >> 4 * (lane % 8) : 0;
            }
#pragma unroll
            for (unsigned t = 0; t < 4; t++) {
                if (!(held[t] & 1)) v[t].x += plus[t] & 1 ? scale : -scale;
                if (!(held[t] & 2)) v[t].y += plus[t] & 2 ? scale : -scale;
                if (!(held[t] & 4)) v[t].z += plus[t] & 4 ? scale : -scale;
                if (!(held[t] & 8)) v[t].w += plus[t] & 8 ? scale : -scale;
                sums[t * WARP + lane] = v[t];
            }
        } else {
            for (size_t i = base + lane; i < n && i < base + DECODED; i += WARP)
                if (!hold || !(hold[i / 8] >> i % 8 & 1)) sum[i] += wire[i / 8] >> i % 8 & 1 ? scale : -scale;
        }
    }
}

// 256 threads: 8 warps a block, 8 blocks fill the 2048 threads of a multiprocessor; a block moves 32 KiB and goes, so that the last
// wave of blocks is a small part of the whole.
static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *, uint64_t *bad, void *stream) {
    const float least = o->zero == TERSE_ZERO_PLUS ? 0.0f : 0x1p-149f;
    const auto kernel = multiples_of(16, x) && multiples_of(4, wire, o->hold) ? sign_encode<true> : sign_encode<false>;
    return launch(kernel, divided_up(n, 8 * ENCODED), 256, stream, wire, x, n, o->hold, least, bad);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, void *, uint64_t *, void *stream) {
    const auto kernel = multiples_of(16, sum) && multiples_of(4, wire, o->hold) ? sign_decode_add<true> : sign_decode_add<false>;
    return launch(kernel, divided_up(n, 8 * DECODED), 256, stream, sum, wire, n, o->hold, o->scale);
}

extern const terse_codec_cuda terse_sign_cuda;
const terse_codec_cuda terse_sign_cuda = {&terse_sign_scalar, nullptr, encode, decode_add};
