// Products of factors of rank r on a GPU, with the bits of low_rank.h: every sum is a chain of fused multiply-adds in
// the order of k, and norms are added in fp64 in the order of rows. x (m, n), p (m, r), q (n, r)
#include "low_rank.cuh"

constexpr unsigned SIDE = 64, DEPTH = 16, EDGE = 16, PER_EDGE = SIDE / EDGE, THREADS = EDGE * EDGE;

// A block has a tile of 64 x 64 elements of x, a thread 4 x 4 of them, 16 apart, with their sums in registers. 16
// columns of p and q at a time are in shared memory: 8 KiB, from which a warp reads without conflicts, for the threads
// of a row of the tile read neighbouring floats.
__global__ void __launch_bounds__(THREADS) add_kernel(float *x, const float *p, const float *q, size_t m, size_t n, size_t r, float keep, float scale) {
    __shared__ float ps[DEPTH][SIDE + 1], qs[DEPTH][SIDE + 1];
    const unsigned down = threadIdx.x / EDGE, across = threadIdx.x % EDGE;
    const size_t columns = divided_up(n, SIDE), tiles = divided_up(m, SIDE) * columns;
    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const size_t row = tile / columns * SIDE, column = tile % columns * SIDE;
        float sums[PER_EDGE][PER_EDGE] = {};
        for (size_t k = 0; k < r; k += DEPTH) {
            const unsigned depth = r - k < DEPTH ? (unsigned)(r - k) : DEPTH;
            for (unsigned at = threadIdx.x; at < SIDE * DEPTH; at += THREADS) {
                const unsigned i = at / DEPTH, d = at % DEPTH;
                ps[d][i] = d < depth && row + i < m ? p[(row + i) * r + k + d] : 0.0f;
                qs[d][i] = d < depth && column + i < n ? q[(column + i) * r + k + d] : 0.0f;
            }
            __syncthreads();
            for (unsigned d = 0; d < depth; d++) {
                float a[PER_EDGE], b[PER_EDGE];
#pragma unroll
                for (unsigned e = 0; e < PER_EDGE; e++) a[e] = ps[d][down + e * EDGE], b[e] = qs[d][across + e * EDGE];
#pragma unroll
                for (unsigned i = 0; i < PER_EDGE; i++)
#pragma unroll
                    for (unsigned j = 0; j < PER_EDGE; j++) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
            }
            __syncthreads();
        }
#pragma unroll
        for (unsigned i = 0; i < PER_EDGE; i++)
#pragma unroll
            for (unsigned j = 0; j < PER_EDGE; j++) {
                const size_t y = row + down + i * EDGE, z = column + across + j * EDGE;
                if (y < m && z < n) x[y * n + z] = keep * x[y * n + z] + scale * sums[i][j];
            }
    }
}

// norms[k] = norm of column k. A thread has a column, so the rows of a warp's 32 columns are whole lines.
__global__ void __launch_bounds__(WARP) norms_kernel(double *norms, const float *columns, size_t n, size_t r) {
    for (size_t k = first_thread(); k < r; k += all_threads()) {
        double sum = 0;
#pragma unroll 8
        for (size_t i = 0; i < n; i++) sum += (double)columns[i * r + k] * (double)columns[i * r + k];
        norms[k] = sqrt(sum);
    }
}

// norms[r] = threshold times the largest norm. One warp.
__global__ void __launch_bounds__(WARP) least_kernel(double *norms, size_t r, double threshold) {
    double largest = 0;
    for (size_t k = lane_of_warp(); k < r; k += WARP) largest = norms[k] > largest ? norms[k] : largest;
#pragma unroll
    for (unsigned width = WARP / 2; width; width /= 2) {
        const double other = __shfl_xor_sync(EVERY_LANE, largest, width);
        largest = other > largest ? other : largest;
    }
    if (lane_of_warp() == 0) norms[r] = threshold * largest;
}

__global__ void __launch_bounds__(THREADS) normalize_kernel(float *q, float *columns, size_t n, size_t r, const double *norms) {
    for (size_t at = first_thread(); at < n * r; at += all_threads()) {
        const double norm = norms[at % r];
        const bool usable = norm > norms[r];
        const float value = usable ? (float)((double)columns[at] / norm) : 0.0f;
        columns[at] = value;
        if (usable) q[at] = value;
    }
}

cudaError_t low_rank_add(float *x, const float *p, const float *q, size_t m, size_t n, size_t r, float keep, float scale, void *stream) {
    return launch_kernel(add_kernel, divided_up(m, SIDE) * divided_up(n, SIDE), THREADS, stream, x, p, q, m, n, r, keep, scale);
}

cudaError_t low_rank_normalize(float *q, float *columns, size_t n, size_t r, double threshold, double *norms, void *stream) {
    cudaError_t error = launch_kernel(norms_kernel, divided_up(r, WARP), WARP, stream, norms, columns, n, r);
    if (error == cudaSuccess) error = launch_kernel(least_kernel, r ? 1 : 0, WARP, stream, norms, r, threshold);
    if (error == cudaSuccess) error = launch_kernel(normalize_kernel, divided_up(n * r, THREADS), THREADS, stream, q, columns, n, r, norms);
    return error;
}
