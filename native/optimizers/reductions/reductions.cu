// Sums of squares on a GPU, with the bits of reductions.c. A half-warp walks a chunk in the order of reductions.h; each
// of its 16 lanes has one partial sum. x (n) -> one sum for each chunk of 64 Ki elements.
#include "reductions.cuh"
#include "terse/walk.h"

constexpr unsigned PARTIALS = 16, THREADS = 64, OF_ROUND = TERSE_ROUND / PARTIALS, PAGES = TERSE_WALK_GROUP / TERSE_PAGE;

// Blocks are small because there are few chunks. Each lane has 16 loads in flight: a round of each page.
__global__ void __launch_bounds__(THREADS) sums_kernel(double *sums, const float *x, size_t n) {
    const unsigned j = threadIdx.x % PARTIALS, half = 0xffffu << (lane_of_warp() & 16);
    const size_t chunks = divided_up(n, TERSE_REDUCTION_CHUNK);
    for (size_t chunk = first_thread() / PARTIALS; chunk < chunks; chunk += all_threads() / PARTIALS) {
        const float *const from = x + chunk * TERSE_REDUCTION_CHUNK;
        const size_t left = n - chunk * TERSE_REDUCTION_CHUNK;
        const unsigned length = left < TERSE_REDUCTION_CHUNK ? (unsigned)left : (unsigned)TERSE_REDUCTION_CHUNK;
        double partial = 0;
        unsigned i = 0;
        for (; i + TERSE_WALK_GROUP <= length; i += TERSE_WALK_GROUP)
            for (unsigned at = 0; at < TERSE_PAGE; at += TERSE_ROUND) {
                float v[PAGES * OF_ROUND];
#pragma unroll
                for (unsigned k = 0; k < PAGES * OF_ROUND; k++) v[k] = from[i + k / OF_ROUND * TERSE_PAGE + at + k % OF_ROUND * PARTIALS + j];
#pragma unroll
                for (unsigned k = 0; k < PAGES * OF_ROUND; k++) partial += (double)v[k] * (double)v[k];
            }
        for (i += j; i < length; i += PARTIALS) partial += (double)from[i] * (double)from[i];
#pragma unroll
        for (unsigned width = PARTIALS / 2; width; width /= 2) {
            const double other = __shfl_down_sync(half, partial, width, PARTIALS);
            if (j < width) partial += other;
        }
        if (j == 0) sums[chunk] = partial;
    }
}

cudaError_t sums_of_squares(double *sums, const float *x, size_t n, void *stream) {
    return launch_kernel(sums_kernel, divided_up(divided_up(n, TERSE_REDUCTION_CHUNK), THREADS / PARTIALS), THREADS, stream, sums, x, n);
}
