// Which elements are kept: a sample, counts of ranges, and the choice.
#ifndef TERSE_TOP_K_SEARCH_CUH
#define TERSE_TOP_K_SEARCH_CUH
#include "shared/reductions/reductions.cuh"
#include "top_k.cuh"

constexpr unsigned THREADS = 256, WARPS = THREADS / WARP;
constexpr unsigned RANGES = TOP_K_RANGES, ROUND = TOP_K_RANGE_BITS, ALL_SHIFT = 31 - ROUND, PICKED = RANGES / THREADS;
constexpr unsigned COUNTED = 16 * WARP, TILE = 16 * THREADS;  // floats of a warp's unit, and of a block's; 16 loads a
                                                              // lane are on their way at once
constexpr size_t MOST_BLOCKS = 792;  // 6 for each of the 132 multiprocessors of an H100 or H200

// In device memory, zeros at first: everything is in sight.
struct search {
    unsigned low, finer;  // range r holds the bits of magnitudes from low + (r << shift) on, shift = ALL_SHIFT - finer
    unsigned found, least, chosen;  // chosen: 1 once the kept elements are known
    unsigned long long ties;        // chosen are magnitudes above `least`, and as many that equal it; set once found
    unsigned long long beyond, ended, next_tile, in[RANGES];

    __device__ unsigned shift() const { return ALL_SHIFT - finer; }
    __device__ unsigned end() const {
        const unsigned long long behind = low + ((unsigned long long)RANGES << shift());
        return behind < INFINITE ? (unsigned)behind : INFINITE;
    }
};

// Adds this block's counts. True in the last block that does: it sees the counts of all.
__device__ inline bool add_counts(search *s, const unsigned *in) {
    __shared__ bool last;
    __syncthreads();
    for (unsigned r = threadIdx.x; r < RANGES; r += THREADS)
        if (in[r]) atomicAdd(&s->in[r], (unsigned long long)in[r]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&s->ended, 1ull) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return last;
}

// Thread t takes the counts of the ranges RANGES - 1 - 8 t - j, j = 0 .. 7, as in[j], and clears them for the next
// round. Returns the count of all higher ranges.
__device__ inline unsigned long long take_counts(search *s, unsigned long long (&in)[PICKED]) {
    __shared__ unsigned long long of_warps[WARPS];
    unsigned long long own = 0;
#pragma unroll
    for (unsigned j = 0; j < PICKED; j++) {
        unsigned long long *const at = &s->in[RANGES - 1 - PICKED * threadIdx.x - j];
        own += in[j] = fresh(at);
        *at = 0;
    }
    unsigned long long before = own;
#pragma unroll
    for (unsigned stride = 1; stride < WARP; stride *= 2) {
        const unsigned long long other = __shfl_up_sync(EVERY_LANE, before, stride);
        if (lane_of_warp() >= stride) before += other;
    }
    if (lane_of_warp() == WARP - 1) of_warps[threadIdx.x / WARP] = before;
    __syncthreads();
    for (unsigned w = 0; w < threadIdx.x / WARP; w++) before += of_warps[w];
    return before - own;
}

__global__ void __launch_bounds__(THREADS) top_k_sample(search *s, const float *x, size_t n, size_t k, size_t samples) {
    __shared__ unsigned in[RANGES];
    __shared__ unsigned high, low;
    for (unsigned r = threadIdx.x; r < RANGES; r += THREADS) in[r] = 0;
    __syncthreads();
    const size_t stride = n / samples;
    for (size_t sample = first_thread(); sample < samples; sample += all_threads())
        atomicAdd(&in[magnitude_bits(x[top_k_sampled(stride, 1, sample)]) >> ALL_SHIFT], 1u);
    if (!add_counts(s, in)) return;

    const double expected = (double)k * (double)samples / (double)n, margin = 16 + expected / 8;
    if (threadIdx.x == 0) high = RANGES - 1, low = 0;
    unsigned long long counts[PICKED], before = take_counts(s, counts);
#pragma unroll
    for (unsigned j = 0; j < PICKED; j++) {
        const double above = (double)before, seen = (double)(before += counts[j]);
        const unsigned range = RANGES - 1 - PICKED * threadIdx.x - j;
        if (above <= expected - margin && seen > expected - margin) high = range;
        if (above < expected + margin && seen >= expected + margin) low = range;
    }
    __syncthreads();
    if (threadIdx.x) return;
    unsigned finer = ROUND;  // as fine as it can be and see all of them
    for (unsigned seen_at_once = 1; seen_at_once < high + 1 - low; seen_at_once *= 2) finer--;
    s->low = low << ALL_SHIFT, s->finer = finer, s->ended = 0;
}

__global__ void __launch_bounds__(THREADS, 6)
    top_k_count(search *s, const float *x, size_t n, size_t k, uint64_t *bad) {
    __shared__ unsigned in[RANGES], beyond;
    if (s->found) return;
    for (unsigned r = threadIdx.x; r < RANGES; r += THREADS) in[r] = 0;
    if (threadIdx.x == 0) beyond = 0;
    __syncthreads();

    const unsigned low = s->low, shift = s->shift(), end = s->end();
    unsigned larger_ones = 0, range = 0, run = 0;  // neighbours are often equal (zeros): they are counted together
    const auto count = [&](unsigned magnitude) {
        if (magnitude >= end) larger_ones++;
        else if (magnitude >= low) {
            const unsigned of = (magnitude - low) >> shift;
            if (of != range) {
                if (run) atomicAdd(&in[range], run);
                range = of, run = 0;
            }
            run++;
        }
    };
    for (size_t base = first_warp() * COUNTED; base < n; base += all_warps() * COUNTED) {
        unsigned most = 0;
        size_t i = base + lane_of_warp();
        if (base + COUNTED <= n) {
            unsigned v[16];
#pragma unroll
            for (unsigned t = 0; t < 16; t++) v[t] = magnitude_bits(x[i + t * WARP]);
#pragma unroll
            for (unsigned t = 0; t < 16; t++) most = larger(most, v[t]), count(v[t]);
        } else {
            for (; i < n; i += WARP) most = larger(most, magnitude_bits(x[i])), count(magnitude_bits(x[i]));
        }
        if (most >= INFINITE) refuse_first(bad, x, base, base + COUNTED < n ? base + COUNTED : n);
    }
    if (run) atomicAdd(&in[range], run);
    if (larger_ones) atomicAdd(&beyond, larger_ones);
    __syncthreads();
    if (threadIdx.x == 0 && beyond) atomicAdd(&s->beyond, (unsigned long long)beyond);
    if (!add_counts(s, in)) return;

    unsigned long long counts[PICKED], before = fresh(&s->beyond) + take_counts(s, counts);
    __shared__ bool picked;
    if (threadIdx.x == 0) picked = false;
    __syncthreads();
#pragma unroll
    for (unsigned j = 0; j < PICKED; j++) {
        if (before < k && before + counts[j] >= k) {
            picked = true;
            s->least = low + ((RANGES - 1 - PICKED * threadIdx.x - j) << shift), s->ties = k - before;
            s->found = shift == 0 || s->ties == counts[j];  // all of a range are chosen: no need to look into it
            s->low = s->least, s->finer += shift < ROUND ? shift : ROUND;
        }
        before += counts[j];
    }
    __syncthreads();
    if (threadIdx.x) return;
    if (!picked)
        s->low = s->finer = 0;  // the sample misled: k are larger than what is in sight, or too few are in sight
    if (fresh(bad) != TERSE_CODEC_CUDA_GOOD) s->found = 1;
    s->beyond = s->ended = 0;
}

__device__ inline void put_float(uint8_t *to, float value, bool aligned) {
    if (aligned) *(float *)to = value;
    else
        for (unsigned b = 0; b < 4; b++) to[b] = (uint8_t)(__float_as_uint(value) >> 8 * b);
}

template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_choose(uint8_t *values, bool aligned, Index *chosen, search *s, unsigned long long *states, size_t tiles,
                 const float *x, size_t n, size_t k, const uint64_t *bad) {
    __shared__ unsigned long long next, before[2];
    __shared__ unsigned of_warps[2][WARPS];
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned lane = lane_of_warp(), warp = threadIdx.x / WARP, below = (1u << lane) - 1, least = s->least;
    const unsigned long long ties = s->ties;
    if (first_thread() == 0) s->chosen = 1;
    for (;;) {
        if (threadIdx.x == 0) next = atomicAdd(&s->next_tile, 1ull);
        __syncthreads();
        const size_t tile = next;
        if (tile >= tiles) return;
        const size_t base = tile * TILE + warp * 16 * WARP;
        float v[16];
        unsigned above[16], equal[16], counts[2] = {};
#pragma unroll
        for (unsigned t = 0; t < 16; t++) v[t] = base + t * WARP + lane < n ? x[base + t * WARP + lane] : 0.0f;
#pragma unroll
        for (unsigned t = 0; t < 16; t++) {
            above[t] = __ballot_sync(EVERY_LANE, magnitude_bits(v[t]) > least);
            equal[t] = __ballot_sync(EVERY_LANE, magnitude_bits(v[t]) == least && base + t * WARP + lane < n);
            counts[0] += __popc(above[t]), counts[1] += __popc(equal[t]);
        }
        if (lane == 0) of_warps[0][warp] = counts[0], of_warps[1][warp] = counts[1];
        __syncthreads();
        if (warp < 2) {  // one for those above, one for the equal ones
            unsigned own = 0;
            for (unsigned w = 0; w < WARPS; w++) own += of_warps[warp][w];
            const unsigned long long all = before_tile(states + warp * tiles, tile, own);
            if (lane == 0) before[warp] = all;
        }
        __syncthreads();
        unsigned long long higher = before[0], same = before[1];
        for (unsigned w = 0; w < warp; w++) higher += of_warps[0][w], same += of_warps[1][w];
#pragma unroll
        for (unsigned t = 0; t < 16; t++) {
            const unsigned long long same_before = same + __popc(equal[t] & below);
            const unsigned long long at = higher + __popc(above[t] & below) + (same_before < ties ? same_before : ties);
            if ((above[t] >> lane & 1 || (equal[t] >> lane & 1 && same_before < ties)) && at < k) {
                chosen[at] = (Index)(base + t * WARP + lane);
                put_float(values + 4 * at, v[t], aligned);
            }
            higher += __popc(above[t]), same += __popc(equal[t]);
        }
    }
}

#endif
