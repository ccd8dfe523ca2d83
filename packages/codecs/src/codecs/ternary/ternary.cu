// ternary on a GPU: plus = x > 0, nonzero = x != 0, a bit each. x (n) -> two planes (2, ceil(n / 8) bytes). As sign.cu,
// with two words.
#include "shared/signs/signs.cuh"
#include "ternary.h"

template <bool ALIGNED>
__global__ void __launch_bounds__(256)
    ternary_encode(uint8_t *plus, uint8_t *nonzero, const float *x, size_t n, uint64_t *bad) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * ENCODED; base < n; base += all_warps() * ENCODED) {
        unsigned above = 0, apart = 0, most = 0;
        if (ALIGNED && base + ENCODED <= n) {
            float4 v[8];
#pragma unroll
            for (unsigned t = 0; t < 8; t++) v[t] = ((const float4 *)(x + base))[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < 8; t++) {
                const float of[4] = {v[t].x, v[t].y, v[t].z, v[t].w};
                unsigned nibbles[2] = {};
#pragma unroll
                for (unsigned k = 0; k < 4; k++) {
                    nibbles[0] |= (unsigned)(of[k] > 0.0f) << k;
                    nibbles[1] |= (unsigned)(of[k] != 0.0f) << k;
                    most = larger(most, magnitude_bits(of[k]));
                }
                const unsigned words[2] = {word_of_nibbles(nibbles[0]), word_of_nibbles(nibbles[1])};
                if (lane % 8 == t)
                    above = words[0], apart = words[1];  // the lane keeps tile lane % 8, lanes 8 (lane / 8) .. + 7
            }
            const size_t at = base / 32 + lane % 8 * 4 + lane / 8;
            ((unsigned *)plus)[at] = above;
            ((unsigned *)nonzero)[at] = apart;
        } else {
            for (unsigned t = 0; t < 32; t++) {
                const size_t i = base + t * WARP + lane;
                const float value = i < n ? x[i] : 0.0f;
                most = larger(most, magnitude_bits(value));
                const unsigned words[2] = {__ballot_sync(EVERY_LANE, value > 0.0f),
                                           __ballot_sync(EVERY_LANE, value != 0.0f)};
                if (lane == t) above = words[0], apart = words[1];
            }
            const size_t at = base / 8 + 4 * lane;
            for (unsigned b = 0; b < 4 && 8 * (at + b) < n; b++)
                plus[at + b] = (uint8_t)(above >> 8 * b), nonzero[at + b] = (uint8_t)(apart >> 8 * b);
        }
        if (most >= INFINITE) refuse_first(bad, x, base, base + ENCODED < n ? base + ENCODED : n);
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(256) ternary_decode_add(float *sum, const uint8_t *plus, const uint8_t *nonzero,
                                                          size_t n, float scale, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned lane = lane_of_warp();
    const auto value = [&](unsigned above, unsigned apart) {
        return scale * (float)((int)(apart & 1) * (2 * (int)(above & 1) - 1));
    };
    for (size_t base = first_warp() * DECODED; base < n; base += all_warps() * DECODED) {
        if (ALIGNED && base + DECODED <= n) {
            float4 *const sums = (float4 *)(sum + base);
            float4 v[4];
            unsigned above[4], apart[4];
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                v[t] = sums[t * WARP + lane], above[t] = nibble_at(plus, base, t),
                apart[t] = nibble_at(nonzero, base, t);
#pragma unroll
            for (unsigned t = 0; t < 4; t++) {
                v[t].x += value(above[t], apart[t]), v[t].y += value(above[t] >> 1, apart[t] >> 1);
                v[t].z += value(above[t] >> 2, apart[t] >> 2), v[t].w += value(above[t] >> 3, apart[t] >> 3);
                sums[t * WARP + lane] = v[t];
            }
        } else {
            for (size_t i = base + lane; i < n && i < base + DECODED; i += WARP)
                sum[i] += value(bit_at(plus, i), bit_at(nonzero, i));
        }
    }
}

// Blocks as in sign.cu.
static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *, void *,
                                 uint64_t *bad, void *stream) {
    uint8_t *const nonzero = wire + terse_ternary_plane(n);
    const auto kernel = multiples_of(16, x) && multiples_of(4, wire, nonzero) ? ternary_encode<true>
                                                                              : ternary_encode<false>;
    return launch(kernel, divided_up(n, 8 * ENCODED), 256, stream, wire, nonzero, x, n, bad);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, void *,
                                     uint64_t *bad, void *stream) {
    const uint8_t *const nonzero = wire + terse_ternary_plane(n);
    const auto kernel = multiples_of(16, sum) && multiples_of(4, wire, nonzero) ? ternary_decode_add<true>
                                                                                : ternary_decode_add<false>;
    return launch(kernel, divided_up(n, 8 * DECODED), 256, stream, sum, wire, nonzero, n, o->scale, bad);
}

extern const terse_codec_cuda terse_ternary_cuda;
const terse_codec_cuda terse_ternary_cuda = {&terse_ternary_scalar, nullptr, encode, decode_add};
