// The cosine transform by the threads of a warp or a block.
//
// The numbers at once are in shared memory, 8 for each thread. A level of Lee's transform is one sum or difference for
// each pair. A thread reads its 4 pairs; when all threads have read, it writes them to where the next level reads them.
#ifndef TERSE_DCT_TOP_K_COSINE_CUH
#define TERSE_DCT_TOP_K_COSINE_CUH
#include "cosine.h"
#include "dct_top_k.h"
#include "launch.cuh"
#include "shared/indices/indices.cuh"

constexpr unsigned THREADS = 512, OF_THREAD = 8, PAIRS = OF_THREAD / 2;
constexpr unsigned AT_ONCE = THREADS * OF_THREAD;  // numbers of a block: 32 KiB
constexpr size_t MOST_PLANES = 264;  // squares in the workspace: 2 for each of the 132 multiprocessors of an H100 or
                                     // H200
constexpr double LARGEST = 0x1.fffffep127;  // fp32

// The threads that share a chunk.
struct warp_team {
    static constexpr unsigned SIZE = WARP, BLOCK = 256, BLOCKS = 3;  // threads of a block, blocks of a multiprocessor
                                                                     // at least
    static __device__ unsigned rank() { return lane_of_warp(); }
    static __device__ unsigned of_block() { return threadIdx.x / WARP; }
    static __device__ size_t first() { return first_warp(); }
    static __device__ size_t all() { return all_warps(); }
    static __device__ void wait() { __syncwarp(); }
    static __device__ unsigned sum(unsigned own) { return __reduce_add_sync(EVERY_LANE, own); }
    static __device__ unsigned largest(unsigned own) { return __reduce_max_sync(EVERY_LANE, own); }
    // How many threads of lower rank have a flag, and in *of_all how many of all: the lower 16 bits count the flag
    // `one`, the upper 16 bits `other`.
    static __device__ unsigned before(bool one, bool other, unsigned *of_all) {
        const unsigned ones = __ballot_sync(EVERY_LANE, one), others = __ballot_sync(EVERY_LANE, other),
                       below = (1u << rank()) - 1;
        *of_all = __popc(ones) | __popc(others) << 16;
        return __popc(ones & below) | __popc(others & below) << 16;
    }
};

struct block_team {
    static constexpr unsigned SIZE = THREADS, BLOCK = THREADS, BLOCKS = 2;
    static __device__ unsigned rank() { return threadIdx.x; }
    static __device__ unsigned of_block() { return 0; }
    static __device__ size_t first() { return blockIdx.x; }
    static __device__ size_t all() { return gridDim.x; }
    static __device__ void wait() { __syncthreads(); }
    // Gathers the value of each warp in `of_warps`; the next call waits until all threads have read it.
    static __device__ const unsigned *gather(unsigned of_warp) {
        __shared__ unsigned of_warps[THREADS / WARP];
        __syncthreads();
        if (lane_of_warp() == 0) of_warps[threadIdx.x / WARP] = of_warp;
        __syncthreads();
        return of_warps;
    }
    static __device__ unsigned sum(unsigned own) {
        const unsigned *const of_warps = gather(warp_team::sum(own));
        unsigned all = 0;
        for (unsigned w = 0; w < THREADS / WARP; w++) all += of_warps[w];
        return all;
    }
    static __device__ unsigned largest(unsigned own) {
        const unsigned *const of_warps = gather(warp_team::largest(own));
        unsigned all = 0;
        for (unsigned w = 0; w < THREADS / WARP; w++) all = larger(all, of_warps[w]);
        return all;
    }
    static __device__ unsigned before(bool one, bool other, unsigned *of_all) {
        unsigned of_warp, below = warp_team::before(one, other, &of_warp);
        const unsigned *const of_warps = gather(of_warp);
        *of_all = 0;
        for (unsigned w = 0; w < THREADS / WARP; w++) {
            if (w < threadIdx.x / WARP) below += of_warps[w];
            *of_all += of_warps[w];
        }
        return below;
    }
};

// Division by a number that is known before, mostly a power of two: a GPU has no instruction for any other. It is exact
// for x up to 2^18 and value up to 2^14. With reciprocal = (2^32 + r) / odd, r < odd, the product x reciprocal / 2^32
// is less than x 2^-32 <= 1 / odd beyond x / odd.
struct divisor {
    unsigned value, shift, reciprocal;  // value = odd 2^shift; 0: odd is 1
    static __host__ __device__ divisor by(unsigned value) {
        unsigned shift = 0;
        while (shift < 31 && !(value >> shift & 1)) shift++;
        return {value, shift, value >> shift > 1 ? 0xffffffffu / (value >> shift) + 1 : 0};
    }
    __device__ unsigned quotient(unsigned x) const {
        return reciprocal ? __umulhi(x >> shift, reciprocal) : x >> shift;
    }
    __device__ unsigned rest(unsigned x) const { return x - quotient(x) * value; }
    __device__ divisor half() const { return {value / 2, shift - 1, reciprocal}; }
    __device__ divisor twice() const { return {2 * value, shift + 1, reciprocal}; }
};

// Chunks that are all alike.
struct alike {
    size_t chunks, bytes;            // bytes of one on the wire
    divisor at_once;                 // chunks of a team, or lines of a square that is too large for one
    divisor length, side, k, width;  // floats of a chunk; of a line; how many are kept; bits of an index
    unsigned index_bytes;
    size_t begin, wire_begin;  // of the first
};

// What a transform multiplies with: dct_basis, its arrays one after the other in device memory.
struct basis {
    const double *factors;  // sqrt(1 / length), sqrt(2 / length), then `cosine` of dct_basis
    divisor odd;

    __device__ double factor(unsigned j) const { return factors[j != 0]; }
    __device__ double cosine(unsigned t) const { return factors[2 + t]; }
    __device__ double secant(unsigned half, unsigned i) const { return cosine(half + 1 + i); }
    // cos(pi t / 2 odd), t < 4 odd.
    __device__ double cosine_at(unsigned t) const {
        const unsigned half = 2 * odd.value;
        if (t > half) t = 2 * half - t;
        return t > odd.value ? -cosine(half - t) : cosine(t);
    }
};

__global__ void __launch_bounds__(THREADS) dct_put_basis(double *factors, unsigned length, unsigned odd) {
    for (unsigned t = (unsigned)first_thread(); t <= length; t += (unsigned)all_threads()) {
        unsigned half = odd;
        while (t > 2 * half) half *= 2;
        factors[2 + t] = t <= odd ? dct_cosine(t, odd) : 1.0 / (2.0 * dct_cosine(2 * (t - half - 1) + 1, 2 * half));
        if (t < 2) factors[t] = sqrt((t ? 2.0 : 1.0) / (double)length);
    }
}

// Lines of c numbers in shared memory. Rows stand one behind the other. Columns are those of squares, `width` wide,
// which stand one behind the other.
template <bool COLUMNS>
struct lines {
    unsigned count;
    divisor c, width;  // width is 1 for rows

    // *e counts the pairs (or numbers) of all lines, `of_line` in each. Returns where the line of *e begins, and sets
    // *e to its place in that line.
    __device__ unsigned begin(unsigned *e, const divisor &of_line) const {
        const unsigned across = COLUMNS ? width.quotient(*e) : *e, line = of_line.quotient(across);
        const unsigned column = COLUMNS ? width.rest(*e) : 0;
        *e = of_line.rest(across);
        return COLUMNS ? line * c.value * width.value + column : line * c.value;
    }
    __device__ unsigned step() const { return COLUMNS ? width.value : 1; }
};

// Returns the same number, in a way that the compiler does not see through. Otherwise it keeps the places of all pairs
// at all levels, and runs out of registers.
__device__ inline unsigned anew(unsigned number) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(number));
#endif
    return number;
}

// One level, for all pairs (x, y) of sub-lines of 2 half numbers: `read` computes their new values, `write` puts them
// in their new places.
template <class Team, bool COLUMNS, class Read, class Write>
__device__ inline void level(double *tile, const lines<COLUMNS> &l, const divisor &half, const Read &read,
                             const Write &write) {
    const divisor of_line = l.c.half();
    const unsigned pairs = l.count * of_line.value, step = l.step();
    double one[PAIRS], other[PAIRS];
#pragma unroll
    for (unsigned u = 0; u < PAIRS; u++) {
        unsigned e = anew(Team::rank()) + u * Team::SIZE;
        if (e >= pairs) break;
        const unsigned begin = l.begin(&e, of_line), i = half.rest(e);
        const double *const at = tile + begin + 2 * (e - i) * step;
        read([&](unsigned j) { return at[j * step]; }, i, one[u], other[u]);
    }
    Team::wait();
#pragma unroll
    for (unsigned u = 0; u < PAIRS; u++) {
        unsigned e = anew(Team::rank()) + u * Team::SIZE;
        if (e >= pairs) break;
        const unsigned begin = l.begin(&e, of_line), i = half.rest(e);
        double *const at = tile + begin + 2 * (e - i) * step;
        write([&](unsigned j, double value) { at[j * step] = value; }, i, one[u], other[u]);
    }
    Team::wait();
}

// Sub-lines of odd length: plain sums, in the order of dct_top_k.h.
template <class Team, bool COLUMNS>
__device__ inline void odd_sums(double *tile, const lines<COLUMNS> &l, const basis &b, bool inverse) {
    if (b.odd.value == 1) return;
    const unsigned all = l.count * l.c.value, step = l.step();
    double sums[OF_THREAD];
#pragma unroll
    for (unsigned u = 0; u < OF_THREAD; u++) {
        unsigned e = anew(Team::rank()) + u * Team::SIZE;
        if (e >= all) break;
        const unsigned begin = l.begin(&e, l.c), r = b.odd.rest(e), by = inverse ? 2 * r + 1 : 2 * r;
        const double *const at = tile + begin + (e - r) * step;
        double sum = 0;
        for (unsigned s = 0, t = inverse ? 0 : r; s < b.odd.value; s++) {
            sum += at[s * step] * b.cosine_at(t);
            t += by;
            if (t >= 4 * b.odd.value) t -= 4 * b.odd.value;
        }
        sums[u] = sum;
    }
    Team::wait();
#pragma unroll
    for (unsigned u = 0; u < OF_THREAD; u++) {
        unsigned e = anew(Team::rank()) + u * Team::SIZE;
        if (e >= all) break;
        const unsigned begin = l.begin(&e, l.c);
        tile[begin + e * step] = sums[u];
    }
    Team::wait();
}

template <class Team, bool COLUMNS>
__device__ inline void forward(double *tile, const lines<COLUMNS> &l, const basis &b) {
    for (divisor of = l.c; of.value > b.odd.value;) {
        of = of.half();
        const unsigned half = of.value;
        level<Team>(
            tile, l, of,
            [&](const auto &x, unsigned i, double &A, double &B) {
                const double left = x(i), right = x(2 * half - 1 - i);
                A = left + right, B = (left - right) * b.secant(half, i);
            },
            [&](const auto &put, unsigned i, double A, double B) { put(i, A), put(half + i, B); });
    }
    odd_sums<Team>(tile, l, b, false);
    for (divisor of = b.odd; of.value < l.c.value; of = of.twice()) {
        const unsigned half = of.value;
        level<Team>(
            tile, l, of,
            [&](const auto &x, unsigned j, double &even, double &odd) {
                even = x(j), odd = x(half + j);
                if (j + 1 < half) odd += x(half + j + 1);
            },
            [&](const auto &put, unsigned j, double even, double odd) { put(2 * j, even), put(2 * j + 1, odd); });
    }
}

template <class Team, bool COLUMNS>
__device__ inline void backward(double *tile, const lines<COLUMNS> &l, const basis &b) {
    for (divisor of = l.c; of.value > b.odd.value;) {
        of = of.half();
        const unsigned half = of.value;
        level<Team>(
            tile, l, of,
            [&](const auto &X, unsigned j, double &A, double &B) {
                A = X(2 * j), B = X(2 * j + 1);
                if (j) B += X(2 * j - 1);
            },
            [&](const auto &put, unsigned j, double A, double B) { put(j, A), put(half + j, B); });
    }
    odd_sums<Team>(tile, l, b, true);
    for (divisor of = b.odd; of.value < l.c.value; of = of.twice()) {
        const unsigned half = of.value;
        level<Team>(
            tile, l, of,
            [&](const auto &x, unsigned i, double &left, double &right) {
                const double even = x(i), odd = x(half + i) * b.secant(half, i);
                left = even + odd, right = even - odd;
            },
            [&](const auto &put, unsigned i, double left, double right) {
                put(i, left), put(2 * half - 1 - i, right);
            });
    }
}

#endif
