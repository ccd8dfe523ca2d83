// The reductions of reductions.h on a GPU, bit for bit. x (n) -> one partial sum for each 64 Ki of each scale group ->
// one sum per scale group.
//
//   a half-warp walks one chunk of 64 Ki: lane j adds the elements j, j + 16, j + 32, ... in that order, then the fold
//   a warp adds the chunks of one scale group in their order
//
// A slot holds one chunk's partial sum. Of blocks, each has as many slots as the first needs; of segments, chunk c of
// scale group r has slot begin(r) / chunk + r + c: no two are the same, and no table is needed to find them.
#ifndef TERSE_REDUCTIONS_CUH
#define TERSE_REDUCTIONS_CUH
#include "reductions.h"
#include "shared/scale-groups/scale_groups.cuh"

struct slots {
    scale_groups in;
    size_t chunk, count, of_block;  // of_block: slots of one block

    __device__ size_t of(size_t r) const { return in.ends ? in.begin(r) / chunk + r : r * of_block; }
    // The elements [begin, end) of a slot; none where it is not used. Returns its scale group.
    __device__ size_t span(size_t slot, size_t *begin, size_t *end) const {
        size_t r = 0;
        if (in.ends) {
            size_t high = in.count - 1;  // the last scale group that begins at this slot or before it
            while (r < high) {
                const size_t middle = high - (high - r) / 2;
                if (of(middle) <= slot) r = middle;
                else high = middle - 1;
            }
        } else {
            r = slot / of_block;
        }
        const size_t group_end = in.begin(r + 1);
        *begin = in.begin(r) + (slot - of(r)) * chunk;
        *end = *begin + chunk < group_end ? *begin + chunk : group_end;
        return r;
    }
};

inline slots slots_of(const scale_groups &in, size_t chunk) {
    const size_t of_block = divided_up(in.block, chunk);
    return {in, chunk, in.count == 0 ? 0 : in.ends ? in.n / chunk + in.count + 1 : in.count * of_block, of_block};
}

inline size_t slot_count(size_t n, const terse_codec_options *o, size_t chunk) {
    const size_t ends_are_somewhere = 8;
    return slots_of({n, terse_scale_group_count(n, o), o->block && o->block < n ? o->block : n,
                     o->segments ? (const size_t *)ends_are_somewhere : nullptr},
                    chunk)
        .count;
}

enum summed { PLAIN, MAGNITUDES, SQUARES };

// A long vector has few slots (256 Mi elements: 4096), so small blocks: large ones would not spread evenly over the
// multiprocessors.
constexpr unsigned SUM_THREADS = 64, ON_THE_WAY = 32;

// ON_THE_WAY elements a lane are loaded at once. Masked elements count as 0. about: the number that is subtracted
// from the elements of each scale group; null: 0.
template <summed TERM>
static __global__ void __launch_bounds__(SUM_THREADS)
    sum_slots(double *partials, const float *x, const uint8_t *hold, const double *about, slots s) {
    const unsigned j = threadIdx.x % 16, half = 0xffffu << (lane_of_warp() & 16);
    for (size_t slot = first_thread() / 16; slot < s.count; slot += all_threads() / 16) {
        size_t begin, end;
        const size_t r = s.span(slot, &begin, &end);
        const double taken = about ? about[r] : 0;
        const auto term = [&](float element, size_t i) {
            const double value = (double)element - taken;
            if (TERM == PLAIN) return value;
            if (TERM == MAGNITUDES) return fabs(value);
            return hold ? value * value * (double)(~(hold[i / 8] >> i % 8) & 1) : value * value;
        };
        double partial = 0;
        size_t i = begin + j;
        for (; i + (ON_THE_WAY - 1) * 16 < end; i += ON_THE_WAY * 16) {
            float v[ON_THE_WAY];
#pragma unroll
            for (unsigned k = 0; k < ON_THE_WAY; k++) v[k] = x[i + 16 * k];
#pragma unroll
            for (unsigned k = 0; k < ON_THE_WAY; k++) partial += term(v[k], i + 16 * k);
        }
        for (; i < end; i += 16) partial += term(x[i], i);
#pragma unroll
        for (unsigned stride = 8; stride; stride /= 2) {
            const double other = __shfl_down_sync(half, partial, stride, 16);
            if (j < stride) partial += other;
        }
        if (j == 0) partials[slot] = partial;
    }
}

// The bits of the largest magnitude of each slot; one warp per slot. Chunks are shorter than those of sums, because
// order does not matter.
constexpr size_t LARGEST_CHUNK = 8192;
[[maybe_unused]] static __global__ void __launch_bounds__(256)
    largest_of_slots(unsigned *partials, const float *x, slots s) {
    for (size_t slot = first_warp(); slot < s.count; slot += all_warps()) {
        size_t begin, end;
        s.span(slot, &begin, &end);
        unsigned most = 0;
        size_t i = begin + lane_of_warp();
        for (; i + 7 * WARP < end; i += 8 * WARP) {
            float v[8];
#pragma unroll
            for (unsigned k = 0; k < 8; k++) v[k] = x[i + k * WARP];
#pragma unroll
            for (unsigned k = 0; k < 8; k++) most = larger(most, magnitude_bits(v[k]));
        }
        for (; i < end; i += WARP) most = larger(most, magnitude_bits(x[i]));
        most = __reduce_max_sync(EVERY_LANE, most);
        if (lane_of_warp() == 0) partials[slot] = most;
    }
}

__device__ inline float largest_of_group(const unsigned *partials, const slots &s, size_t r) {
    const size_t first = s.of(r), length = s.in.begin(r + 1) - s.in.begin(r),
                 count = length / s.chunk + (length % s.chunk != 0);
    unsigned most = 0;
    for (size_t at = lane_of_warp(); at < count; at += WARP) most = larger(most, partials[first + at]);
    return __uint_as_float(__reduce_max_sync(EVERY_LANE, most));
}

// A scale group without a scale: *bad = its first element that is not finite, or, where all are, the first of its
// largest. A warp; rare.
__device__ inline void refuse_group(uint64_t *bad, const float *x, size_t begin, size_t end) {
    unsigned most = 0;
    size_t where = end;
    bool finite = true;
    for (size_t i = begin + lane_of_warp(); i < end && finite; i += WARP) {
        const unsigned bits = magnitude_bits(x[i]);
        if (where == end || bits > most) most = bits, where = i;
        finite = bits < INFINITE;
    }
    if (!finite) refuse(bad, where);
    if (!__all_sync(EVERY_LANE, finite)) return;
    if (__reduce_max_sync(EVERY_LANE, most) == most && where < end) refuse(bad, where);
}

// The sum of a scale group's slots, in order; the same in every lane of the warp that asks.
__device__ inline double sum_of_group(const double *partials, const slots &s, size_t r) {
    const unsigned lane = lane_of_warp();
    const size_t first = s.of(r), length = s.in.begin(r + 1) - s.in.begin(r),
                 count = length / s.chunk + (length % s.chunk != 0);
    double all = 0;
    for (size_t at = 0; at < count; at += 4 * WARP) {
        double v[4];  // all on their way before the first is added
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            v[k] = at + k * WARP + lane < count ? partials[first + at + k * WARP + lane] : 0;
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            for (unsigned from = 0; from < WARP && at + k * WARP + from < count; from++)
                all += __shfl_sync(EVERY_LANE, v[k], from);
    }
    return all;
}

inline terse_codec_status largest_all(unsigned *partials, const float *x, const slots &s, void *stream) {
    return launch(largest_of_slots, divided_up(s.count, 8), 256, stream, partials, x, s);
}

// 64 threads are 4 chunks: a block for every multiprocessor of an H100 or H200 from 33 Mi elements on.
template <summed TERM>
inline terse_codec_status sum_all(double *partials, const float *x, const uint8_t *hold, const double *about,
                                  const slots &s, void *stream) {
    return launch(sum_slots<TERM>, divided_up(s.count, SUM_THREADS / 16), SUM_THREADS, stream, partials, x, hold, about,
                  s);
}

#endif
