// The kernels of bf16 and f16: x (n) <-> halves (2 n bytes). The template argument Half converts one number to 16 bits
// and back.
//
//   a warp's 512 floats = 4 tiles of 128; lane l has floats 4 l .. 4 l + 3: 16 bytes of x, 8 bytes of the wire
#ifndef TERSE_HALVES_CUH
#define TERSE_HALVES_CUH
#include "launch.cuh"

constexpr unsigned HALVES = 4 * 4 * WARP;

__device__ inline unsigned half_at(const uint8_t *wire, size_t i) {
    return wire[2 * i] | (unsigned)wire[2 * i + 1] << 8;
}

template <class Half, bool ALIGNED>
static __global__ void __launch_bounds__(256) encode_halves(uint8_t *wire, const float *x, size_t n, uint64_t *bad) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * HALVES; base < n; base += all_warps() * HALVES) {
        const size_t end = base + HALVES < n ? base + HALVES : n;
        unsigned most = 0;
        const auto half = [&](float value) {
            most = larger(most, magnitude_bits(value));
            return Half::of(__float_as_uint(value));
        };
        if (ALIGNED && base + HALVES <= n) {
            float4 v[4];
#pragma unroll
            for (unsigned t = 0; t < 4; t++) v[t] = ((const float4 *)(x + base))[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                ((uint2 *)(wire + 2 * base))[t * WARP + lane] = make_uint2(half(v[t].x) | half(v[t].y) << 16,
                                                                           half(v[t].z) | half(v[t].w) << 16);
        } else {
            for (size_t i = base + lane; i < end; i += WARP) {
                const unsigned bits = half(x[i]);
                wire[2 * i] = (uint8_t)bits, wire[2 * i + 1] = (uint8_t)(bits >> 8);
            }
        }
        if (most > Half::LARGEST) refuse_first(bad, x, base, end, Half::LARGEST);
    }
}

// *bad = the first half that no encoder writes. This reads the wire once more, a fifth of the traffic of adding,
// because nothing may be added to the sum if the wire is bad.
template <class Half, bool ALIGNED>
static __global__ void __launch_bounds__(256) check_halves(const uint8_t *wire, size_t n, uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const auto infinite = [](unsigned half) { return (half & Half::INFINITE_BITS) == Half::INFINITE_BITS; };
    for (size_t i = 8 * first_thread(); i < n; i += 8 * all_threads()) {
        if (ALIGNED && i + 8 <= n) {
            const uint4 v = *(const uint4 *)(wire + 2 * i);
            const unsigned of[4] = {v.x, v.y, v.z, v.w};
            for (unsigned k = 0; k < 8; k++)
                if (infinite(of[k / 2] >> 16 * (k % 2))) refuse(bad, i + k);
        } else {
            for (size_t k = i; k < n && k < i + 8; k++)
                if (infinite(half_at(wire, k))) refuse(bad, k);
        }
    }
}

template <class Half, bool ALIGNED>
static __global__ void __launch_bounds__(256)
    add_halves(float *sum, const uint8_t *wire, size_t n, float scale, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned lane = lane_of_warp();
    const auto value = [&](unsigned half) { return scale * Half::value(half & 0xffff); };
    for (size_t base = first_warp() * HALVES; base < n; base += all_warps() * HALVES) {
        if (ALIGNED && base + HALVES <= n) {
            float4 *const sums = (float4 *)(sum + base);
            float4 v[4];
            uint2 halves[4];
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                v[t] = sums[t * WARP + lane], halves[t] = ((const uint2 *)(wire + 2 * base))[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < 4; t++) {
                v[t].x += value(halves[t].x), v[t].y += value(halves[t].x >> 16);
                v[t].z += value(halves[t].y), v[t].w += value(halves[t].y >> 16);
                sums[t * WARP + lane] = v[t];
            }
        } else {
            for (size_t i = base + lane; i < n && i < base + HALVES; i += WARP) sum[i] += value(half_at(wire, i));
        }
    }
}

// 256 threads, 8 warps a block: 16 KiB of x a block.
template <class Half>
terse_codec_status launch_encode_halves(uint8_t *wire, const float *x, size_t n, const terse_codec_options *, void *,
                                        uint64_t *bad, void *stream) {
    const auto kernel = multiples_of(16, x) && multiples_of(8, wire) ? encode_halves<Half, true>
                                                                     : encode_halves<Half, false>;
    return launch(kernel, divided_up(n, 8 * HALVES), 256, stream, wire, x, n, bad);
}

template <class Half>
terse_codec_status launch_add_halves(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, void *,
                                     uint64_t *bad, void *stream) {
    const auto check = multiples_of(16, wire) ? check_halves<Half, true> : check_halves<Half, false>;
    const terse_codec_status status = launch(check, divided_up(n, 8 * 256), 256, stream, wire, n, bad);
    if (status != TERSE_CODEC_OK) return status;
    const auto add = multiples_of(16, sum) && multiples_of(8, wire) ? add_halves<Half, true> : add_halves<Half, false>;
    return launch(add, divided_up(n, 8 * HALVES), 256, stream, sum, wire, n, o->scale, bad);
}

#endif
