// Products of factors of rank r on a GPU, with the bits of low_rank.h: every sum is a chain of fused multiply-adds in
// the order of k, and norms are added in fp64 in the order of rows. x (m, n), p (m, r), q (n, r)
#include "low_rank.cuh"

constexpr unsigned SIDE = 128, DEPTH = 16, EDGE = 16, FOUR = 4, HALVES = 2, THREADS = EDGE * EDGE;

// Four neighbours of a row of shared memory, whose address is a multiple of 16.
__device__ inline void load_four(float *to, const float *from) {
    const float4 four = *(const float4 *)from;
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

// x = keep x + scale sum, for the four columns from z on, as far as there are n. FOURS: they can be read and written at
// once.
template <bool FOURS>
__device__ inline void change_four(float *x, const float *sums, size_t z, size_t n, float keep, float scale) {
    if (FOURS && z + FOUR <= n) {
        const float4 was = *(const float4 *)(x + z);
        *(float4 *)(x + z) = make_float4(keep * was.x + scale * sums[0], keep * was.y + scale * sums[1],
                                         keep * was.z + scale * sums[2], keep * was.w + scale * sums[3]);
    } else {
#pragma unroll
        for (unsigned e = 0; e < FOUR; e++)
            if (z + e < n) x[z + e] = keep * x[z + e] + scale * sums[e];
    }
}

// A block has a tile of 128 x 128 elements of x. A thread has 8 x 8 of them, whose sums are in registers: four
// neighbouring rows and columns in each half of the tile. 16 columns of p and q at a time are in shared memory, 16.5
// KiB, where a thread reads four floats at once: 4 reads for 64 multiplications.
template <bool FOURS>
__global__ void __launch_bounds__(THREADS, 2)
    add_kernel(float *x, const float *p, const float *q, size_t m, size_t n, size_t r, float keep, float scale) {
    constexpr unsigned PER_EDGE = HALVES * FOUR;
    alignas(16) __shared__ float ps[DEPTH][SIDE + FOUR], qs[DEPTH][SIDE + FOUR];
    const unsigned down = threadIdx.x / EDGE * FOUR, across = threadIdx.x % EDGE * FOUR;
    const size_t columns = divided_up(n, SIDE), tiles = divided_up(m, SIDE) * columns;
    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const size_t row = tile / columns * SIDE, column = tile % columns * SIDE;
        float sums[PER_EDGE][PER_EDGE] = {};
        for (size_t k = 0; k < r; k += DEPTH) {
            const unsigned depth = r - k < DEPTH ? (unsigned)(r - k) : DEPTH;
#pragma unroll
            for (unsigned at = threadIdx.x; at < SIDE * DEPTH; at += THREADS) {
                const unsigned i = at / DEPTH, d = at % DEPTH;
                ps[d][i] = d < depth && row + i < m ? p[(row + i) * r + k + d] : 0.0f;
                qs[d][i] = d < depth && column + i < n ? q[(column + i) * r + k + d] : 0.0f;
            }
            __syncthreads();
            for (unsigned d = 0; d < depth; d++) {
                float a[PER_EDGE], b[PER_EDGE];
#pragma unroll
                for (unsigned half = 0; half < HALVES; half++) {
                    load_four(a + half * FOUR, &ps[d][half * (SIDE / HALVES) + down]);
                    load_four(b + half * FOUR, &qs[d][half * (SIDE / HALVES) + across]);
                }
#pragma unroll
                for (unsigned i = 0; i < PER_EDGE; i++)
#pragma unroll
                    for (unsigned j = 0; j < PER_EDGE; j++) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
            }
            __syncthreads();
        }
#pragma unroll
        for (unsigned i = 0; i < PER_EDGE; i++) {
            const size_t y = row + i / FOUR * (SIDE / HALVES) + down + i % FOUR;
#pragma unroll
            for (unsigned half = 0; half < HALVES; half++)
                if (y < m)
                    change_four<FOURS>(x + y * n, &sums[i][half * FOUR], column + half * (SIDE / HALVES) + across, n,
                                       keep, scale);
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

__global__ void __launch_bounds__(THREADS)
    normalize_kernel(float *q, float *columns, size_t n, size_t r, const double *norms) {
    for (size_t at = first_thread(); at < n * r; at += all_threads()) {
        const double norm = norms[at % r];
        const bool usable = norm > norms[r];
        const float value = usable ? (float)((double)columns[at] / norm) : 0.0f;
        columns[at] = value;
        if (usable) q[at] = value;
    }
}

cudaError_t low_rank_add(float *x, const float *p, const float *q, size_t m, size_t n, size_t r, float keep,
                         float scale, void *stream) {
    const auto kernel = n % FOUR == 0 && multiples_of(16, x) ? add_kernel<true> : add_kernel<false>;
    return launch_kernel(kernel, divided_up(m, SIDE) * divided_up(n, SIDE), THREADS, stream, x, p, q, m, n, r, keep,
                         scale);
}

cudaError_t low_rank_normalize(float *q, float *columns, size_t n, size_t r, double threshold, double *norms,
                               void *stream) {
    cudaError_t error = launch_kernel(norms_kernel, divided_up(r, WARP), WARP, stream, norms, columns, n, r);
    if (error == cudaSuccess) error = launch_kernel(least_kernel, r ? 1 : 0, WARP, stream, norms, r, threshold);
    if (error == cudaSuccess)
        error = launch_kernel(normalize_kernel, divided_up(n * r, THREADS), THREADS, stream, q, columns, n, r, norms);
    return error;
}
