// Sums of squares whose order of additions is part of the result. Of a chunk of TERSE_REDUCTION_CHUNK terms, each of 16
// lanes adds every sixteenth, one after the other. Nothing can shorten these chains of 4096 additions, so all other
// work happens beside them: the last warp of a block adds, and the other warps bring what it adds next, a tile at a
// time, into shared memory.
#ifndef TERSE_ORDERED_SUMS_CUH
#define TERSE_ORDERED_SUMS_CUH
#include "kernels.cuh"
#include "terse/optimizers.h"
#include "terse/walk.h"

constexpr unsigned PARTIALS = 16, BRINGING = 256, ORDERED_THREADS = BRINGING + WARP, AT_ONCE = 16;

// Terms has
//   SUMS               how many sums there are: 1 or 2
//   PAGES_IN_TURN      whether a chain takes four pages in turn (reductions.h), or the elements in order
//   load(i)            what is read of element i
//   terms(loaded, of)  of[s] = the term of sum s
// Two tiles fill 32 KiB.
template <class Terms>
constexpr unsigned TILE = TERSE_WALK_GROUP / Terms::SUMS;

// The element of a full tile that a lane adds as its k-th.
template <class Terms>
__device__ inline unsigned place_of(unsigned k) {
    constexpr unsigned OF_ROUND = TERSE_ROUND / PARTIALS, PAGES = TERSE_WALK_GROUP / TERSE_PAGE;
    if (!Terms::PAGES_IN_TURN) return k * PARTIALS;
    return k / OF_ROUND % PAGES * TERSE_PAGE + k / (OF_ROUND * PAGES) * TERSE_ROUND + k % OF_ROUND * PARTIALS;
}

// sums[SUMS c + s] = sum s of chunk c.
template <class Terms>
__global__ void __launch_bounds__(ORDERED_THREADS)
    ordered_sums_kernel(double *sums, size_t n, const __grid_constant__ Terms work) {
    constexpr unsigned SUMS = Terms::SUMS, TILE = ::TILE<Terms>, EACH = TILE / BRINGING;
    static_assert(SUMS * PARTIALS <= WARP, "one warp adds");
    static_assert(!Terms::PAGES_IN_TURN || TILE == TERSE_WALK_GROUP, "a tile has four pages");
    __shared__ float tiles[2][SUMS][TILE + PARTIALS];  // the second sum's lanes read other banks
    const bool brings = threadIdx.x < BRINGING;
    const unsigned lane = lane_of_warp(), j = lane % PARTIALS, sum = lane / PARTIALS;
    const size_t chunks = divided_up(n, TERSE_REDUCTION_CHUNK);
    for (size_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const size_t begin = chunk * TERSE_REDUCTION_CHUNK;
        const unsigned length = n - begin < TERSE_REDUCTION_CHUNK ? (unsigned)(n - begin)
                                                                  : (unsigned)TERSE_REDUCTION_CHUNK;
        double partial = 0;
        for (unsigned from = 0, turn = 0; from < length + TILE; from += TILE, turn ^= 1) {
            if (brings && from < length) {  // the next tile
                decltype(work.load(0)) loaded[EACH];
#pragma unroll
                for (unsigned k = 0; k < EACH; k++)
                    if (const unsigned at = from + k * BRINGING + threadIdx.x; at < length)
                        loaded[k] = work.load(begin + at);
#pragma unroll
                for (unsigned k = 0; k < EACH; k++) {
                    const unsigned at = k * BRINGING + threadIdx.x;
                    float of[SUMS];
                    if (from + at < length) work.terms(loaded[k], of);
#pragma unroll
                    for (unsigned s = 0; s < SUMS; s++)
                        if (from + at < length) tiles[turn][s][at] = of[s];
                }
            } else if (!brings && from >= TILE && sum < SUMS) {  // the tile before
                const float *const tile = tiles[turn ^ 1][sum] + j;
                const unsigned here = length - (from - TILE) < TILE ? length - (from - TILE) : TILE;
                if (here == TILE) {
                    for (unsigned k = 0; k < TILE / PARTIALS; k += AT_ONCE) {
                        float v[AT_ONCE];
#pragma unroll
                        for (unsigned e = 0; e < AT_ONCE; e++) v[e] = tile[place_of<Terms>(k + e)];
#pragma unroll
                        for (unsigned e = 0; e < AT_ONCE; e++) partial += (double)v[e] * (double)v[e];
                    }
                } else {
                    for (unsigned at = 0; at + j < here; at += PARTIALS) partial += (double)tile[at] * (double)tile[at];
                }
            }
            __syncthreads();
        }
        if (brings || sum >= SUMS) continue;
        const unsigned half = 0xffffu << (sum * PARTIALS);
#pragma unroll
        for (unsigned width = PARTIALS / 2; width; width /= 2) {
            const double other = __shfl_down_sync(half, partial, width, PARTIALS);
            if (j < width) partial += other;
        }
        if (j == 0) sums[SUMS * chunk + sum] = partial;
    }
}

template <class Terms>
cudaError_t launch_ordered_sums(double *sums, size_t n, const Terms &work, void *stream) {
    return launch_kernel(ordered_sums_kernel<Terms>, divided_up(n, TERSE_REDUCTION_CHUNK), ORDERED_THREADS, stream,
                         sums, n, work);
}

#endif
