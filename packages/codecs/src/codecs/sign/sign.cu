// sign on a GPU: bit i of the wire = x[i] > 0, or x[i] = 0 and zeros count as plus. x (n) -> wire (ceil(n / 8) bytes).
//
//   a warp's 1024 floats = 8 tiles of 128; in each, lane l has floats 4 l .. 4 l + 3, one nibble of the word of lanes 8
//   (l / 8) .. + 7
#include "shared/signs/signs.cuh"
#include "sign.h"

// Zeros are plus where `least` is 0, and minus where it is the smallest denormal: x > 0 says the same as x >= 2^-149.
template <bool ALIGNED>
__global__ void __launch_bounds__(256)
    sign_encode(uint8_t *wire, const float *x, size_t n, const uint8_t *hold, float least, uint64_t *bad) {
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
                unsigned nibble = 0;
#pragma unroll
                for (unsigned k = 0; k < 4; k++) {
                    nibble |= (unsigned)(of[k] >= least) << k;
                    most = larger(most, magnitude_bits(of[k]));
                }
                const unsigned tile = word_of_nibbles(nibble);
                if (lane % 8 == t) word = tile;  // the lane keeps the word of tile lane % 8, lanes 8 (lane / 8) .. + 7
            }
            const size_t at = base / 32 + lane % 8 * 4 + lane / 8;
            if (hold) word &= ~((const unsigned *)hold)[at];
            ((unsigned *)wire)[at] = word;
        } else {
            for (unsigned t = 0; t < 32; t++) {
                const size_t i = base + t * WARP + lane;
                const float value = i < n ? x[i] : -1.0f;
                most = larger(most, magnitude_bits(value));
                const unsigned ballot = __ballot_sync(EVERY_LANE, value >= least);
                if (lane == t) word = ballot;
            }
            const size_t at = base / 8 + 4 * lane;
            for (unsigned b = 0; b < 4 && 8 * (at + b) < n; b++) {
                const uint8_t byte = (uint8_t)(word >> 8 * b);
                wire[at + b] = hold ? (uint8_t)(byte & ~hold[at + b]) : byte;
            }
        }
        if (most >= INFINITE) refuse_first(bad, x, base, base + ENCODED < n ? base + ENCODED : n);
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(256)
    sign_decode_add(float *sum, const uint8_t *wire, size_t n, const uint8_t *hold, float scale, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * DECODED; base < n; base += all_warps() * DECODED) {
        if (ALIGNED && base + DECODED <= n) {
            add_signs(sum, wire, hold, base, scale);
        } else {
            for (size_t i = base + lane; i < n && i < base + DECODED; i += WARP)
                if (!hold || !bit_at(hold, i)) sum[i] += bit_at(wire, i) ? scale : -scale;
        }
    }
}

// 256 threads: 8 warps a block, 8 blocks fill the 2048 threads of a multiprocessor; a block moves 32 KiB and goes, so
// that the last wave of blocks is a small part of the whole.
static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *,
                                 uint64_t *bad, void *stream) {
    const float least = o->zero == TERSE_ZERO_PLUS ? 0.0f : 0x1p-149f;
    const auto kernel = multiples_of(16, x) && multiples_of(4, wire, o->hold) ? sign_encode<true> : sign_encode<false>;
    return launch(kernel, divided_up(n, 8 * ENCODED), 256, stream, wire, x, n, o->hold, least, bad);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, void *,
                                     uint64_t *bad, void *stream) {
    const auto kernel = multiples_of(16, sum) && multiples_of(4, wire, o->hold) ? sign_decode_add<true>
                                                                                : sign_decode_add<false>;
    return launch(kernel, divided_up(n, 8 * DECODED), 256, stream, sum, wire, n, o->hold, o->scale, bad);
}

extern const terse_codec_cuda terse_sign_cuda;
const terse_codec_cuda terse_sign_cuda = {&terse_sign_scalar, nullptr, encode, decode_add};
