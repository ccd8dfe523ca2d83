// The kernels: a chunk to its largest coefficients on the wire, and back.
#ifndef TERSE_DCT_TOP_K_KERNELS_CUH
#define TERSE_DCT_TOP_K_KERNELS_CUH
#include "cosine.cuh"

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

#endif
