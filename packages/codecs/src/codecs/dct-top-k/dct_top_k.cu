// dct-top-k on a GPU: transforms each chunk of x, in fp64 and in the order of dct_top_k.h, and writes the k largest
// coefficients to the wire.
//
//   chunk                      threads   numbers at once
//   up to 256 floats           a warp    as many chunks as make 256 numbers; warps do not wait for each other
//   up to 4096 floats          a block   as many chunks as make 4096 numbers
//   a square of more           a block   4096; the square itself is in the workspace
//
// The numbers at once are in shared memory, 8 for each thread. A level of Lee's transform is one sum or difference for
// each pair. A thread reads its 4 pairs; when all threads have read, it writes them to where the next level reads them.
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

// Whether k magnitudes add up to a finite fp32; `most` is the largest. Nearly always even k times the largest does;
// otherwise they are added in order.
template <class Magnitude>
__device__ inline bool fit(unsigned most, unsigned k, const Magnitude &magnitude) {
    if (most >= INFINITE) return false;
    if ((double)__uint_as_float(most) * k <= LARGEST / 2) return true;
    double sum = 0;
    for (unsigned j = 0; j < k; j++) sum += (double)__uint_as_float(magnitude(j));
    return sum <= LARGEST;
}

// Writes the k largest coefficients of a chunk to the wire; coefficient j is x[STRIDE j]. False where their sum does
// not fit into fp32. `chosen` has room for k.
template <class Team, unsigned STRIDE>
__device__ inline bool write_largest(uint8_t *wire, const float *x, const alike &a, uint16_t *chosen) {
    const unsigned rank = Team::rank(), n = a.length.value, k = a.k.value;
    const auto magnitude = [&](unsigned j) { return magnitude_bits(x[STRIDE * j]); };
    unsigned most = 0;
    for (unsigned j = rank; j < n; j += Team::SIZE) most = larger(most, magnitude(j));
    most = Team::largest(most);
    const auto as_large_as = [&](unsigned least) {
        unsigned found = 0;
        for (unsigned j = rank; j < n; j += Team::SIZE) found += magnitude(j) >= least;
        return Team::sum(found);
    };
    // Finds the k-th largest bit by bit, from the top: a bit is 1 where k magnitudes are at least as large with it.
    unsigned least = 0, as_large = n;
    for (unsigned bit = 1u << 30; bit && as_large > k; bit >>= 1) {
        if ((least | bit) > most) continue;
        const unsigned found = as_large_as(least | bit);
        if (found >= k) least |= bit, as_large = found;
    }
    const unsigned ties = as_large > k ? k - as_large_as(least + 1) : k;

    unsigned above = 0, same = 0;
    for (unsigned base = 0; base < n; base += Team::SIZE) {
        const unsigned j = base + rank, bits = j < n ? magnitude(j) : 0;
        unsigned of_all;
        const unsigned before = Team::before(bits > least, j < n && bits == least, &of_all);
        const unsigned same_before = same + (before >> 16),
                       at = above + (before & 0xffff) + (same_before < ties ? same_before : ties);
        if (bits > least || (j < n && bits == least && same_before < ties)) chosen[at] = (uint16_t)j;
        above += of_all & 0xffff, same += of_all >> 16;
    }
    Team::wait();
    const bool good = fit(most, k, [&](unsigned j) { return magnitude(chosen[j]); });
    for (unsigned b = rank; b < a.bytes; b += Team::SIZE) {
        unsigned byte = 0;
        if (b < a.index_bytes) {
            unsigned j = a.width.quotient(8 * b);
            for (int at = (int)(j * a.width.value) - 8 * (int)b; at < 8 && j < k; j++, at += (int)a.width.value)
                byte |= at < 0 ? (unsigned)chosen[j] >> -at : (unsigned)chosen[j] << at;
        } else {
            const unsigned v = b - a.index_bytes;
            byte = __float_as_uint(x[STRIDE * chosen[v / 4]]) >> 8 * (v % 4);
        }
        wire[b] = (uint8_t)byte;
    }
    Team::wait();
    return good;
}

// For a chunk whose coefficients do not fit: *misfit = its largest element, of equal ones the first. All are finite.
template <class Team>
__device__ inline void refuse_chunk(uint64_t *misfit, const float *x, size_t begin, unsigned length) {
    unsigned most = 0, where = length;
    for (unsigned i = Team::rank(); i < length; i += Team::SIZE)
        if (where == length || magnitude_bits(x[begin + i]) > most) most = magnitude_bits(x[begin + i]), where = i;
    if (Team::largest(most) == most && where < length) refuse(misfit, begin + where);
}

template <class Team, bool SQUARES>
__global__ void __launch_bounds__(Team::BLOCK, Team::BLOCKS)
    dct_encode(uint8_t *wire, const float *x, alike a, basis b, uint64_t *bad, uint64_t *misfit) {
    __shared__ double room[Team::BLOCK * OF_THREAD];
    constexpr unsigned NUMBERS = OF_THREAD * Team::SIZE;
    double *const tile = room + Team::of_block() * NUMBERS;
    float *const coefficients = (float *)tile;
    uint16_t *const chosen = (uint16_t *)(coefficients + NUMBERS);
    const unsigned rank = Team::rank();
    for (size_t first = Team::first() * a.at_once.value; first < a.chunks; first += Team::all() * a.at_once.value) {
        const unsigned chunks = a.chunks - first < a.at_once.value ? (unsigned)(a.chunks - first) : a.at_once.value,
                       all = chunks * a.length.value;
        const size_t begin = a.begin + first * a.length.value;
        float v[OF_THREAD];
        unsigned most = 0;
#pragma unroll
        for (unsigned u = 0; u < OF_THREAD; u++)
            v[u] = rank + u * Team::SIZE < all ? x[begin + rank + u * Team::SIZE] : 0.0f;
#pragma unroll
        for (unsigned u = 0; u < OF_THREAD; u++) {
            most = larger(most, magnitude_bits(v[u]));
            if (rank + u * Team::SIZE < all) tile[rank + u * Team::SIZE] = (double)v[u];
        }
        if (most >= INFINITE) refuse_first(bad, x, begin, begin + all);
        if (Team::largest(most) >= INFINITE) continue;  // the wire is undefined
        Team::wait();
        forward<Team>(tile, lines<false>{a.side.quotient(all), a.side, {}}, b);
        if (SQUARES) {
            for (unsigned e = rank; e < all; e += Team::SIZE) tile[e] *= b.factor(a.side.rest(e));
            Team::wait();
            forward<Team>(tile, lines<true>{a.side.quotient(all), a.side, a.side}, b);
        }
#pragma unroll
        for (unsigned u = 0; u < OF_THREAD; u++) {
            const unsigned e = (SQUARES ? anew(rank) : rank) + u * Team::SIZE;
            // Every thread writes v: otherwise threads without work would keep the floats in registers until here.
            v[u] = e < all ? (float)(tile[e] * b.factor(SQUARES ? a.side.quotient(a.length.rest(e)) : a.side.rest(e)))
                           : 0.0f;
        }
        Team::wait();
#pragma unroll
        for (unsigned u = 0; u < OF_THREAD; u++)
            if (rank + u * Team::SIZE < all) coefficients[rank + u * Team::SIZE] = v[u];
        Team::wait();
        for (unsigned chunk = 0; chunk < chunks; chunk++)
            if (!write_largest<Team, 1>(wire + a.wire_begin + (first + chunk) * a.bytes,
                                        coefficients + chunk * a.length.value, a, chosen))
                refuse_chunk<Team>(misfit, x, begin + chunk * a.length.value, a.length.value);
    }
}

// A square of more than AT_ONCE numbers: transforms its rows, then its columns, some at a time. A coefficient
// overwrites the first half of a number.
__global__ void __launch_bounds__(THREADS, 2)
    dct_encode_large(uint8_t *wire, const float *x, alike a, basis b, double *planes, uint64_t *bad, uint64_t *misfit) {
    __shared__ double tile[AT_ONCE];
    using team = block_team;
    const unsigned c = a.side.value, at_once = a.at_once.value;
    double *const plane = planes + (size_t)blockIdx.x * a.length.value;
    for (size_t square = blockIdx.x; square < a.chunks; square += gridDim.x) {
        const size_t begin = square * a.length.value;
        unsigned most = 0;
        for (unsigned row = 0; row < c; row += at_once) {
            const unsigned rows = c - row < at_once ? c - row : at_once;
            for (unsigned e = threadIdx.x; e < rows * c; e += THREADS) {
                const float value = x[begin + row * c + e];
                most = larger(most, magnitude_bits(value));
                tile[e] = (double)value;
            }
            __syncthreads();
            forward<team>(tile, lines<false>{rows, a.side, {}}, b);
            for (unsigned e = threadIdx.x; e < rows * c; e += THREADS)
                plane[row * c + e] = tile[e] * b.factor(a.side.rest(e));
            __syncthreads();
        }
        if (most >= INFINITE) refuse_first(bad, x, begin, begin + a.length.value);
        if (team::largest(most) >= INFINITE) continue;
        for (unsigned column = 0; column < c; column += at_once) {
            const unsigned columns = c - column < at_once ? c - column : at_once;
            const divisor width = columns == at_once ? a.at_once : divisor::by(columns);
            const auto in_plane = [&](unsigned e) { return width.quotient(e) * c + column + width.rest(e); };
            for (unsigned e = threadIdx.x; e < columns * c; e += THREADS) tile[e] = plane[in_plane(e)];
            __syncthreads();
            forward<team>(tile, lines<true>{columns, a.side, width}, b);
            for (unsigned e = threadIdx.x; e < columns * c; e += THREADS)
                *(float *)(plane + in_plane(e)) = (float)(tile[e] * b.factor(width.quotient(e)));
            __syncthreads();
        }
        if (!write_largest<team, 2>(wire + square * a.bytes, (const float *)plane, a, (uint16_t *)tile))
            refuse_chunk<team>(misfit, x, begin, a.length.value);
    }
}

// *bad = a chunk that no encoder writes. A warp per chunk.
__global__ void __launch_bounds__(THREADS) dct_check_wire(const uint8_t *wire, alike a, uint64_t *bad) {
    if (__any_sync(EVERY_LANE, *bad != TERSE_CODEC_CUDA_GOOD))
        return;  // all lanes or none, for others write it meanwhile
    for (size_t chunk = first_warp(); chunk < a.chunks; chunk += all_warps()) {
        const uint8_t *const indices = wire + a.wire_begin + chunk * a.bytes, *const values = indices + a.index_bytes;
        const auto magnitude = [&](unsigned j) { return magnitude_bits(float_on_wire(values + 4 * j)); };
        unsigned most = 0;
        bool good = true;
        for (unsigned j = lane_of_warp(); j < a.k.value; j += WARP) {
            const size_t index = index_at(indices, a.index_bytes, j, a.width.value);
            good = good && index < a.length.value &&
                   (j == 0 || index > index_at(indices, a.index_bytes, j - 1, a.width.value));
            most = larger(most, magnitude(j));
        }
        most = __reduce_max_sync(EVERY_LANE, most);
        if (!__all_sync(EVERY_LANE, good) || !fit(most, a.k.value, magnitude)) refuse(bad, chunk);
    }
}

// Calls `put` for each kept coefficient, with the number of its chunk, its place in the chunk, and its value.
template <class Team, class Put>
__device__ inline void each_kept(const uint8_t *wire, size_t first, unsigned chunks, const alike &a, const Put &put) {
    for (unsigned e = Team::rank(); e < chunks * a.k.value; e += Team::SIZE) {
        const unsigned chunk = a.k.quotient(e), j = e - chunk * a.k.value;
        const uint8_t *const indices = wire + a.wire_begin + (first + chunk) * a.bytes;
        put(chunk, (unsigned)index_at(indices, a.index_bytes, j, a.width.value),
            (double)float_on_wire(indices + a.index_bytes + 4 * j));
    }
}

template <class Team, bool SQUARES>
__global__ void __launch_bounds__(Team::BLOCK, Team::BLOCKS)
    dct_decode_add(float *sum, const uint8_t *wire, alike a, basis b, float scale, const uint64_t *bad) {
    __shared__ double room[Team::BLOCK * OF_THREAD];
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    constexpr unsigned NUMBERS = OF_THREAD * Team::SIZE;
    double *const tile = room + Team::of_block() * NUMBERS;
    const unsigned rank = Team::rank();
    for (size_t first = Team::first() * a.at_once.value; first < a.chunks; first += Team::all() * a.at_once.value) {
        const unsigned chunks = a.chunks - first < a.at_once.value ? (unsigned)(a.chunks - first) : a.at_once.value,
                       all = chunks * a.length.value;
        float *const sums = sum + a.begin + first * a.length.value;
        for (unsigned e = rank; e < all; e += Team::SIZE) tile[e] = 0;
        Team::wait();
        each_kept<Team>(wire, first, chunks, a, [&](unsigned chunk, unsigned place, double value) {
            tile[chunk * a.length.value + place] = value * b.factor(SQUARES ? a.side.quotient(place) : place);
        });
        Team::wait();
        if (SQUARES) {
            backward<Team>(tile, lines<true>{a.side.quotient(all), a.side, a.side}, b);
            for (unsigned e = rank; e < all; e += Team::SIZE) tile[e] *= b.factor(a.side.rest(e));
            Team::wait();
        }
        backward<Team>(tile, lines<false>{a.side.quotient(all), a.side, {}}, b);
        for (unsigned e = rank; e < all; e += Team::SIZE) sums[e] += scale * (float)tile[e];
        Team::wait();
    }
}

__global__ void __launch_bounds__(THREADS, 2) dct_decode_add_large(float *sum, const uint8_t *wire, alike a, basis b,
                                                                   double *planes, float scale, const uint64_t *bad) {
    __shared__ double tile[AT_ONCE];
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    using team = block_team;
    const unsigned c = a.side.value, at_once = a.at_once.value;
    double *const plane = planes + (size_t)blockIdx.x * a.length.value;
    for (size_t square = blockIdx.x; square < a.chunks; square += gridDim.x) {
        for (unsigned e = threadIdx.x; e < a.length.value; e += THREADS) plane[e] = 0;
        __syncthreads();
        each_kept<team>(wire, square, 1, a, [&](unsigned, unsigned place, double value) {
            plane[place] = value * b.factor(a.side.quotient(place));
        });
        __syncthreads();
        for (unsigned column = 0; column < c; column += at_once) {
            const unsigned columns = c - column < at_once ? c - column : at_once;
            const divisor width = columns == at_once ? a.at_once : divisor::by(columns);
            const auto in_plane = [&](unsigned e) { return width.quotient(e) * c + column + width.rest(e); };
            for (unsigned e = threadIdx.x; e < columns * c; e += THREADS) tile[e] = plane[in_plane(e)];
            __syncthreads();
            backward<team>(tile, lines<true>{columns, a.side, width}, b);
            for (unsigned e = threadIdx.x; e < columns * c; e += THREADS)
                plane[in_plane(e)] = tile[e] * b.factor(column + width.rest(e));
            __syncthreads();
        }
        for (unsigned row = 0; row < c; row += at_once) {
            const unsigned rows = c - row < at_once ? c - row : at_once;
            for (unsigned e = threadIdx.x; e < rows * c; e += THREADS) tile[e] = plane[row * c + e];
            __syncthreads();
            backward<team>(tile, lines<false>{rows, a.side, {}}, b);
            for (unsigned e = threadIdx.x; e < rows * c; e += THREADS)
                sum[square * a.length.value + row * c + e] += scale * (float)tile[e];
            __syncthreads();
        }
    }
}

static bool for_warps(size_t length) { return length <= OF_THREAD * WARP; }

static alike chunks_alike(size_t chunks, size_t length, size_t side, size_t k, size_t begin, size_t wire_begin) {
    const size_t kept = k < length ? k : length, index_bytes = terse_index_bytes(kept, length),
                 numbers = for_warps(length) ? OF_THREAD * WARP : AT_ONCE;
    const auto by = [](size_t value) { return divisor::by((unsigned)value); };
    const divisor at_once = by(chunks == 0 ? 0 : numbers / (length <= AT_ONCE ? length : side));
    return {chunks,
            index_bytes + 4 * kept,
            at_once,
            by(length),
            by(side),
            by(kept),
            by(terse_index_bits(length)),
            (unsigned)index_bytes,
            begin,
            wire_begin};
}

// Whole chunks, and what is left behind them. The workspace: a word for what does not fit | bases | planes
struct plan {
    bool squares;
    alike whole, rest;

    plan(size_t n, const terse_codec_options *o) : squares(o->dimensions == 2) {
        const size_t length = squares ? o->block * o->block : o->block;
        whole = chunks_alike(n / length, length, o->block, o->k, 0, 0);
        rest = chunks_alike(n % length ? 1 : 0, n % length, n % length, o->k, n - n % length, n / length * whole.bytes);
    }
    size_t blocks_of_planes() const {
        return whole.length.value <= AT_ONCE ? 0 : whole.chunks < MOST_PLANES ? whole.chunks : MOST_PLANES;
    }
    size_t bases() const { return 1; }
    size_t basis_of_rest() const { return bases() + 3 + whole.side.value; }
    size_t planes() const { return basis_of_rest() + (rest.chunks ? 3 + rest.side.value : 0); }
    size_t bytes() const { return 8 * (planes() + blocks_of_planes() * whole.length.value); }
};

static size_t workspace_bytes(size_t n, const terse_codec_options *o) { return plan(n, o).bytes(); }

static terse_codec_status put_basis(basis *b, double *factors, const alike &a, void *stream) {
    const unsigned side = a.side.value, odd = side >> a.side.shift;
    *b = {factors, divisor::by(odd)};
    return a.chunks ? launch(dct_put_basis, divided_up(side + 1, THREADS), THREADS, stream, factors, side, odd)
                    : TERSE_CODEC_OK;
}

// Two or three blocks fit a multiprocessor, and one computes while another waits for memory. More numbers a thread
// would need more registers than there are.
template <class Team>
static size_t blocks_of(const alike &a) {
    return a.chunks ? divided_up(divided_up(a.chunks, a.at_once.value), Team::BLOCK / Team::SIZE) : 0;
}

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    const plan p(n, o);
    double *const room = (double *)workspace;
    uint64_t *const misfit = (uint64_t *)workspace;
    terse_codec_status status = terse_cuda_status(cudaMemsetAsync(misfit, 0xff, sizeof *misfit, (cudaStream_t)stream));
    const auto encode_alike = [&](const alike &a, double *factors) {
        basis b;
        if (status == TERSE_CODEC_OK) status = put_basis(&b, factors, a, stream);
        if (status != TERSE_CODEC_OK) return;
        const bool squares = p.squares;
        if (a.length.value > AT_ONCE)
            status = launch(dct_encode_large, p.blocks_of_planes(), THREADS, stream, wire, x, a, b, room + p.planes(),
                            bad, misfit);
        else if (for_warps(a.length.value))
            status = launch(squares ? dct_encode<warp_team, true> : dct_encode<warp_team, false>,
                            blocks_of<warp_team>(a), warp_team::BLOCK, stream, wire, x, a, b, bad, misfit);
        else
            status = launch(squares ? dct_encode<block_team, true> : dct_encode<block_team, false>,
                            blocks_of<block_team>(a), block_team::BLOCK, stream, wire, x, a, b, bad, misfit);
    };
    encode_alike(p.whole, room + p.bases());
    if (p.rest.chunks) encode_alike(p.rest, room + p.basis_of_rest());
    return status == TERSE_CODEC_OK ? launch(refuse_too, 1, WARP, stream, bad, misfit) : status;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    const plan p(n, o);
    double *const room = (double *)workspace;
    terse_codec_status status = launch(dct_check_wire, divided_up(p.whole.chunks, THREADS / WARP), THREADS, stream,
                                       wire, p.whole, bad);
    if (status == TERSE_CODEC_OK) status = launch(dct_check_wire, p.rest.chunks, THREADS, stream, wire, p.rest, bad);
    const auto decode_alike = [&](const alike &a, double *factors) {
        basis b;
        if (status == TERSE_CODEC_OK) status = put_basis(&b, factors, a, stream);
        if (status != TERSE_CODEC_OK) return;
        const bool squares = p.squares;
        if (a.length.value > AT_ONCE)
            status = launch(dct_decode_add_large, p.blocks_of_planes(), THREADS, stream, sum, wire, a, b,
                            room + p.planes(), o->scale, bad);
        else if (for_warps(a.length.value))
            status = launch(squares ? dct_decode_add<warp_team, true> : dct_decode_add<warp_team, false>,
                            blocks_of<warp_team>(a), warp_team::BLOCK, stream, sum, wire, a, b, o->scale, bad);
        else
            status = launch(squares ? dct_decode_add<block_team, true> : dct_decode_add<block_team, false>,
                            blocks_of<block_team>(a), block_team::BLOCK, stream, sum, wire, a, b, o->scale, bad);
    };
    decode_alike(p.whole, room + p.bases());
    if (p.rest.chunks) decode_alike(p.rest, room + p.basis_of_rest());
    return status;
}

extern const terse_codec_cuda terse_dct_top_k_cuda;
const terse_codec_cuda terse_dct_top_k_cuda = {&terse_dct_top_k_scalar, workspace_bytes, encode, decode_add};
