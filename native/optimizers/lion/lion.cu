// Lion and the two halves of Lion Cub's step on a GPU, in the arithmetic of lion.c. theta, m, g (n); votes: one bit per
// element.
//
//   A warp takes 512 floats of each array = 4 tiles of 128. In each tile, lane l has floats 4 l .. 4 l + 3: one nibble
//   of a word.
#include "lion.cuh"

#include "../elementwise.cuh"

constexpr unsigned TILES = 4, UNIT = TILES * TILE, THREADS = 256;

// c = beta1 m + (1 - beta1) g, and the next m.
struct mixed {
    float c, m;
};
__device__ inline mixed mix(float m, float g, const lion_weights &w) {
    const float scaled = g * w.gradient;
    return {w.m_in_c * m + w.g_in_c * scaled, w.m_in_m * m + w.g_in_m * scaled};
}

// An element votes plus if c >= least. least = 0: zeros vote plus. least = 2^-149, the smallest denormal: zeros vote
// minus.
template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    vote_kernel(uint8_t *wire, float *m, const float *g, size_t n, lion_weights w, float least, uint64_t *bad) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * UNIT; base < n; base += all_warps() * UNIT) {
        size_t first_bad = SIZE_MAX;
        unsigned word = 0;
        const auto look = [&](float c, size_t i) {
            if (magnitude_bits(c) >= INFINITE && i < first_bad) first_bad = i;
            return (unsigned)(c >= least);
        };
        if (ALIGNED && base + UNIT <= n) {
            float4 *const ms = (float4 *)(m + base);
            float4 old[TILES], gradient[TILES];
#pragma unroll
            for (unsigned t = 0; t < TILES; t++)
                old[t] = ms[t * WARP + lane], gradient[t] = ((const float4 *)(g + base))[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < TILES; t++) {
                const size_t i = base + t * TILE + 4 * lane;
                const mixed x = mix(old[t].x, gradient[t].x, w), y = mix(old[t].y, gradient[t].y, w),
                            z = mix(old[t].z, gradient[t].z, w), v = mix(old[t].w, gradient[t].w, w);
                const unsigned tile = word_of_nibbles(look(x.c, i) | look(y.c, i + 1) << 1 | look(z.c, i + 2) << 2 |
                                                      look(v.c, i + 3) << 3);
                if (lane % 8 == t) word = tile;
                ms[t * WARP + lane] = make_float4(x.m, y.m, z.m, v.m);
            }
            if (lane % 8 < TILES) ((unsigned *)wire)[base / 32 + lane % 8 * 4 + lane / 8] = word;
        } else {
            for (unsigned t = 0; t < UNIT / WARP; t++) {
                const size_t i = base + t * WARP + lane;
                unsigned plus = 0;
                if (i < n) {
                    const mixed here = mix(m[i], g[i], w);
                    plus = look(here.c, i);
                    m[i] = here.m;
                }
                const unsigned ballot = __ballot_sync(EVERY_LANE, plus);
                if (lane == t) word = ballot;
            }
            const size_t at = base / 8 + 4 * lane;
            for (unsigned b = 0; lane < UNIT / WARP && b < 4 && 8 * (at + b) < n; b++)
                wire[at + b] = (uint8_t)(word >> 8 * b);
        }
        if (first_bad != SIZE_MAX) refuse(bad, first_bad);
    }
}

struct mix_work {
    struct element {
        float m, g;
    };
    float *c, *m;
    const float *g;
    lion_weights w;
    __device__ element load(size_t i) const { return {m[i], g[i]}; }
    __device__ bool store(size_t i, const element &e) const {
        const mixed here = mix(e.m, e.g, w);
        c[i] = here.c, m[i] = here.m;
        return true;
    }
};

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    step_kernel(float *theta, float *m, const float *g, size_t n, lion_weights w, terse_lion_zero zero, uint64_t *bad) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * UNIT; base < n; base += all_warps() * UNIT) {
        size_t first_bad = SIZE_MAX;
        const auto moved = [&](float at, float c, size_t i) {
            if (magnitude_bits(c) >= INFINITE && i < first_bad) first_bad = i;
            const float kept = at * w.keep;
            if (c == 0.0f && zero == TERSE_LION_HOLD) return kept;
            return kept + (c > 0.0f || (c == 0.0f && zero == TERSE_LION_PLUS) ? w.scale : -w.scale);
        };
        if (ALIGNED && base + UNIT <= n) {
            float4 *const ms = (float4 *)(m + base), *const thetas = (float4 *)(theta + base);
            float4 old[TILES], gradient[TILES], at[TILES];
#pragma unroll
            for (unsigned t = 0; t < TILES; t++)
                old[t] = ms[t * WARP + lane], gradient[t] = ((const float4 *)(g + base))[t * WARP + lane],
                at[t] = thetas[t * WARP + lane];
#pragma unroll
            for (unsigned t = 0; t < TILES; t++) {
                const size_t i = base + t * TILE + 4 * lane;
                const mixed x = mix(old[t].x, gradient[t].x, w), y = mix(old[t].y, gradient[t].y, w),
                            z = mix(old[t].z, gradient[t].z, w), v = mix(old[t].w, gradient[t].w, w);
                thetas[t * WARP + lane] = make_float4(moved(at[t].x, x.c, i), moved(at[t].y, y.c, i + 1),
                                                      moved(at[t].z, z.c, i + 2), moved(at[t].w, v.c, i + 3));
                ms[t * WARP + lane] = make_float4(x.m, y.m, z.m, v.m);
            }
        } else {
            for (size_t i = base + lane; i < n && i < base + UNIT; i += WARP) {
                const mixed here = mix(m[i], g[i], w);
                theta[i] = moved(theta[i], here.c, i);
                m[i] = here.m;
            }
        }
        if (first_bad != SIZE_MAX) refuse(bad, first_bad);
    }
}

// The results of a vote: `four` loads the bits of four neighbours, `one` those of one element (k = 0), `moved` gives
// the new theta.
struct voted_signs {
    struct bits {
        unsigned plus;
    };
    const uint8_t *plus;
    float keep, scale;
    __device__ bits four(size_t base, unsigned t) const { return {nibble_at(plus, base, t)}; }
    __device__ bits one(size_t i) const { return {bit_at(plus, i)}; }
    __device__ float moved(float theta, const bits &b, unsigned k) const {
        return theta * keep + (b.plus >> k & 1 ? scale : -scale);
    }
};

struct voted_ternary {
    struct bits {
        unsigned plus, nonzero;
    };
    const uint8_t *plus, *nonzero;
    float keep, scale;
    __device__ bits four(size_t base, unsigned t) const {
        return {nibble_at(plus, base, t), nibble_at(nonzero, base, t)};
    }
    __device__ bits one(size_t i) const { return {bit_at(plus, i), bit_at(nonzero, i)}; }
    __device__ float moved(float theta, const bits &b, unsigned k) const {
        const float kept = theta * keep;
        return b.nonzero >> k & 1 ? kept + (b.plus >> k & 1 ? scale : -scale) : kept;
    }
};

struct voted_tally {
    struct bits {
        unsigned counts[4];
    };
    lion_planes planes;
    int count, ranks;
    float keep, scale;
    __device__ bits four(size_t base, unsigned t) const {
        bits b = {};
        for (int p = 0; p < count; p++) {
            const unsigned nibble = nibble_at(planes.of[p], base, t);
#pragma unroll
            for (unsigned k = 0; k < 4; k++) b.counts[k] |= (nibble >> k & 1) << p;
        }
        return b;
    }
    __device__ bits one(size_t i) const {
        bits b = {};
        for (int p = 0; p < count; p++) b.counts[0] |= bit_at(planes.of[p], i) << p;
        return b;
    }
    __device__ float moved(float theta, const bits &b, unsigned k) const {
        return theta * keep + (float)(2 * (int)b.counts[k] - ranks) / (float)ranks * scale;
    }
};

template <class Voted, bool ALIGNED>
__global__ void __launch_bounds__(THREADS) apply_kernel(float *theta, size_t n, const __grid_constant__ Voted voted) {
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * UNIT; base < n; base += all_warps() * UNIT) {
        if (ALIGNED && base + UNIT <= n) {
            float4 *const thetas = (float4 *)(theta + base);
            float4 v[TILES];
            typename Voted::bits bits[TILES];
#pragma unroll
            for (unsigned t = 0; t < TILES; t++) v[t] = thetas[t * WARP + lane], bits[t] = voted.four(base, t);
#pragma unroll
            for (unsigned t = 0; t < TILES; t++)
                thetas[t * WARP + lane] = make_float4(voted.moved(v[t].x, bits[t], 0), voted.moved(v[t].y, bits[t], 1),
                                                      voted.moved(v[t].z, bits[t], 2), voted.moved(v[t].w, bits[t], 3));
        } else {
            for (size_t i = base + lane; i < n && i < base + UNIT; i += WARP)
                theta[i] = voted.moved(theta[i], voted.one(i), 0);
        }
    }
}

// 256 threads are 8 warps. A block has 32 KiB of m and g in flight: 8 loads of 16 bytes per lane.
static size_t blocks_of(size_t n) { return divided_up(n, THREADS / WARP * UNIT); }

cudaError_t lion_vote(uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options,
                      uint64_t *bad, void *stream) {
    const float least = options->zero == TERSE_LION_PLUS ? 0.0f : 0x1p-149f;
    const auto kernel = multiples_of(16, m, g) && multiples_of(4, wire) ? vote_kernel<true> : vote_kernel<false>;
    return launch_kernel(kernel, blocks_of(n), THREADS, stream, wire, m, g, n, lion_weights_of(options), least, bad);
}

cudaError_t lion_mix(float *c, float *m, const float *g, size_t n, const terse_lion_options *options, void *stream) {
    return launch_elementwise(n, mix_work{c, m, g, lion_weights_of(options)}, nullptr, stream);
}

cudaError_t lion_step(float *theta, float *m, const float *g, size_t n, const terse_lion_options *options,
                      uint64_t *bad, void *stream) {
    const auto kernel = multiples_of(16, theta, m, g) ? step_kernel<true> : step_kernel<false>;
    return launch_kernel(kernel, blocks_of(n), THREADS, stream, theta, m, g, n, lion_weights_of(options), options->zero,
                         bad);
}

template <class Voted>
static cudaError_t apply(float *theta, size_t n, const Voted &voted, bool aligned, void *stream) {
    const auto kernel = aligned && multiples_of(16, theta) ? apply_kernel<Voted, true> : apply_kernel<Voted, false>;
    return launch_kernel(kernel, blocks_of(n), THREADS, stream, theta, n, voted);
}

cudaError_t lion_apply_signs(float *theta, const uint8_t *wire, size_t n, float keep, float scale, void *stream) {
    return apply(theta, n, voted_signs{wire, keep, scale}, multiples_of(4, wire), stream);
}

cudaError_t lion_apply_ternary(float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep,
                               float scale, void *stream) {
    return apply(theta, n, voted_ternary{plus, nonzero, keep, scale}, multiples_of(4, plus, nonzero), stream);
}

cudaError_t lion_apply_tally(float *theta, const lion_planes &planes, size_t ranks, size_t n, float keep, float scale,
                             void *stream) {
    const int count = tally_planes(ranks);
    bool aligned = true;
    for (int p = 0; p < count; p++) aligned = aligned && multiples_of(4, planes.of[p]);
    return apply(theta, n, voted_tally{planes, count, (int)ranks, keep, scale}, aligned, stream);
}
