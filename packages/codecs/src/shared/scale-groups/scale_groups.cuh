// scale_groups.h on a GPU: the elements that share one scale, and the place of scales in the workspace.
#ifndef TERSE_SCALE_GROUPS_CUH
#define TERSE_SCALE_GROUPS_CUH
#include "launch.cuh"
#include "scale_groups.h"

struct scale_groups {
    size_t n, count, block;  // block: the length of all but the last, where there are no segments
    const size_t *ends;      // of the segments, in device memory; null: none

    __device__ size_t begin(size_t r) const { return ends ? (r ? ends[r - 1] : 0) : r < count ? r * block : n; }
    __device__ size_t of(size_t i) const {
        if (!ends) return count == 1 ? 0 : i / block;
        size_t low = 0, high = count - 1;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (ends[middle] > i) high = middle;
            else low = middle + 1;
        }
        return low;
    }
};

inline size_t whole_words(size_t bytes) { return (bytes + 7) / 8 * 8; }

// The workspace begins with the ends of the segments.
inline size_t bytes_of_ends(const terse_codec_options *o) { return 8 * o->segment_count; }

// The copy reads `segments` before it returns: pageable memory goes through the driver's own.
inline terse_codec_status put_scale_groups(scale_groups *to, size_t n, const terse_codec_options *o, void *workspace,
                                           void *stream) {
    static_assert(sizeof(size_t) == 8);
    *to = {n, terse_scale_group_count(n, o), o->block && o->block < n ? o->block : n, nullptr};
    if (!o->segments) return TERSE_CODEC_OK;
    to->ends = (const size_t *)workspace;
    return terse_cuda_status(
        cudaMemcpyAsync(workspace, o->segments, bytes_of_ends(o), cudaMemcpyHostToDevice, (cudaStream_t)stream));
}

__device__ inline float scale_on_wire(const uint8_t *wire, size_t r) { return float_on_wire(wire + 4 * r); }

__device__ inline void put_scale(uint8_t *wire, size_t r, float scale) {
    for (unsigned b = 0; b < 4; b++) wire[4 * r + b] = (uint8_t)(__float_as_uint(scale) >> 8 * b);
}

// *bad = the first scale group whose scale no encoder writes: negative, not finite, or beyond the largest float when
// multiplied with `reach`.
[[maybe_unused]] static __global__ void check_scales(const uint8_t *wire, size_t count, double reach, uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t r = first_thread(); r < count; r += all_threads()) {
        const double scale = scale_on_wire(wire, r);
        if (!(scale >= 0 && scale * reach <= (double)0x1.fffffep127f)) refuse(bad, r);
    }
}

#endif
