// top-k on a GPU: the k largest magnitudes of x (n), the earlier of equal ones -> k indices of ceil(log2 n) bits, k
// floats.
//
//   sample   at most 2^16 magnitudes in 2048 ranges: where the k-th largest probably lies
//   count    all magnitudes, in 2048 ranges of what is in sight; the last block to end picks the range that holds the
//            k-th. Once where it is known exactly, else again within that range; after a sample that misled, everywhere
//   choose   a tile of 4096 at a time: those above the k-th, and the first that equal it, to their places
//   pack     their indices; of Elias-Fano's, the bits are set in words of the workspace, and copied
//   values   to 16 bits, to 2 bits and a table, or to signs and a table
//
// Decoding reads Elias-Fano's marks in tiles too: the place of a mark gives its index once the marks before it are
// counted.
//
// Three readings of x: two to count and one to choose, as long as the sample is right. How often to count is known on
// the device only, so all four rounds that it can take are launched, and those that are not needed return at once.
#include "codecs/f16/f16.cuh"
#include "shared/indices/indices.cuh"
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

// A lane packs eight indices of `width` bits into `width` bytes. The 256 indices of a warp are put side by side in
// shared memory, and written together.
constexpr unsigned PACKED = 8 * WARP, MOST_WIDTH = 48;

template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_pack(uint8_t *indices, const Index *chosen, size_t k, unsigned width, bool aligned, const uint64_t *bad) {
    __shared__ unsigned room[WARPS][WARP * MOST_WIDTH / 4];
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned lane = lane_of_warp();
    unsigned *const words = room[threadIdx.x / WARP];
    uint8_t *const bytes = (uint8_t *)words;
    const size_t all = divided_up(k * width, 8);
    for (size_t base = first_warp() * PACKED; base < k; base += all_warps() * PACKED) {
        unsigned long long bits = 0;
        unsigned count = 0;
        uint8_t *to = bytes + lane * width;
#pragma unroll
        for (unsigned j = 0; j < 8; j++) {
            const size_t at = base + 8 * lane + j;
            bits |= (at < k ? (unsigned long long)chosen[at] : 0) << count;
            for (count += width; count >= 8; count -= 8, bits >>= 8) *to++ = (uint8_t)bits;
        }
        __syncwarp();
        const size_t begin = base / 8 * width;
        const unsigned left = (unsigned)(all - begin < WARP * width ? all - begin : WARP * width),
                       whole = aligned ? left / 4 : 0;
        for (unsigned w = lane; w < whole; w += WARP) ((unsigned *)(indices + begin))[w] = words[w];
        for (unsigned b = 4 * whole + lane; b < left; b += WARP) indices[begin + b] = bytes[b];
        __syncwarp();
    }
}

// The bits of Elias-Fano's indices, or of a bitmap, in words that are 0.
template <class Index>
__global__ void __launch_bounds__(THREADS) top_k_set_bits(unsigned *words, const Index *chosen, size_t k, unsigned low,
                                                          unsigned step, size_t marks_at, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t j = first_thread(); j < k; j += all_threads()) {
        const uint64_t index = chosen[j];
        const size_t mark = marks_at + (size_t)(index >> low) + step * j;
        atomicOr(words + mark / 32, 1u << mark % 32);
        uint64_t value = index & (((uint64_t)1 << low) - 1);
        for (size_t bit = j * low, end = bit + low; bit < end;) {
            const unsigned shift = bit % 32, bits = 32 - shift;
            atomicOr(words + bit / 32, (unsigned)(value << shift));
            value >>= bits, bit += bits;
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    top_k_copy_bytes(uint8_t *to, const unsigned *words, size_t bytes, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t i = first_thread(); i < bytes; i += all_threads()) to[i] = (uint8_t)(words[i / 4] >> 8 * (i % 4));
}

// What a code of 2 bits, or of a sign, stands for.
struct meaning {
    double mean, low, high;
    unsigned long long counts[4];

    __device__ unsigned bin_of(float c) const {
        return (unsigned)((double)c >= low) + (unsigned)((double)c >= mean) + (unsigned)((double)c >= high);
    }
};

// *bad = the first kept element that no half can be.
template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_halves(uint8_t *values, const float *kept, const Index *chosen, size_t k, const search *s, uint64_t *bad) {
    if (!s->chosen) return;
    for (size_t j = first_thread(); j < k; j += all_threads()) {
        const unsigned bits = __float_as_uint(kept[j]), half = f16_half::of(bits);
        if ((bits & 0x7fffffffu) > f16_half::LARGEST) refuse(bad, (size_t)chosen[j]);
        values[2 * j] = (uint8_t)half, values[2 * j + 1] = (uint8_t)(half >> 8);
    }
}

// One warp: the mean, and then the borders of the bins beside it.
__global__ void top_k_mean(meaning *m, const double *partials, slots s) {
    const double sum = sum_of_group(partials, s, 0);
    if (lane_of_warp() == 0) m->mean = sum / (double)s.in.n;
}

__global__ void top_k_borders(meaning *m, const double *partials, slots s) {
    const double reach = 1.5 * sqrt(sum_of_group(partials, s, 0) / (double)s.in.n);
    if (lane_of_warp() == 0) m->low = m->mean - reach, m->high = m->mean + reach;
}

// The sums of the four bins, each in the order of sum_slots: that of bin q of a slot is partials[q * slots + slot].
__global__ void __launch_bounds__(SUM_THREADS)
    top_k_sum_bins(double *partials, meaning *m, const float *kept, slots s, const search *found) {
    if (!found->chosen) return;
    const unsigned j = threadIdx.x % 16, half = 0xffffu << (lane_of_warp() & 16);
    for (size_t slot = first_thread() / 16; slot < s.count; slot += all_threads() / 16) {
        size_t begin, end;
        s.span(slot, &begin, &end);
        double partial[4] = {};
        unsigned counts[4] = {};
        for (size_t i = begin + j; i < end; i += 16) {
            const float c = kept[i];
            const unsigned bin = m->bin_of(c);
#pragma unroll
            for (unsigned q = 0; q < 4; q++) partial[q] += bin == q ? (double)c : 0.0, counts[q] += bin == q;
        }
#pragma unroll
        for (unsigned q = 0; q < 4; q++) {
#pragma unroll
            for (unsigned stride = 8; stride; stride /= 2) {
                const double other = __shfl_down_sync(half, partial[q], stride, 16);
                if (j < stride) partial[q] += other;
            }
            if (j == 0) partials[q * s.count + slot] = partial[q];
            if (counts[q]) atomicAdd(&m->counts[q], (unsigned long long)counts[q]);
        }
    }
}

// One warp.
__global__ void top_k_table(uint8_t *table, const double *partials, const meaning *m, slots s) {
    for (unsigned q = 0; q < 4; q++) {
        const double sum = sum_of_group(partials + q * s.count, s, 0);
        if (lane_of_warp() == 0) put_scale(table, q, m->counts[q] ? (float)(sum / (double)m->counts[q]) : 0.0f);
    }
}

__global__ void top_k_magnitude(uint8_t *table, const double *partials, slots s) {
    const double sum = sum_of_group(partials, s, 0);
    if (lane_of_warp() == 0) put_scale(table, 0, (float)(sum / (double)s.in.n));
}

// A lane writes a byte: four codes of 2 bits, or eight signs.
__global__ void __launch_bounds__(THREADS)
    top_k_codes(uint8_t *values, const float *kept, size_t k, unsigned bits, const meaning *m, const search *s) {
    if (!s->chosen) return;
    const unsigned in_byte = 8 / bits;
    for (size_t byte = first_thread(); byte * in_byte < k; byte += all_threads()) {
        unsigned codes = 0;
        for (unsigned i = 0; i < in_byte && byte * in_byte + i < k; i++) {
            const float c = kept[byte * in_byte + i];
            codes |= (bits == 2 ? m->bin_of(c) : (unsigned)(c >= 0.0f)) << bits * i;
        }
        values[byte] = (uint8_t)codes;
    }
}

// A wire, from which a value is read. bits: of a value.
struct kept_on_wire {
    const uint8_t *table, *values;
    unsigned bits;

    __device__ float at(size_t j) const {
        if (bits == 32) return float_on_wire(values + 4 * j);
        if (bits == 16) return f16_half::value(values[2 * j] | (unsigned)values[2 * j + 1] << 8);
        if (bits == 2) return scale_on_wire(table, values[j / 4] >> 2 * (j % 4) & 3);
        const float mean = scale_on_wire(table, 0);
        return values[j / 8] >> j % 8 & 1 ? mean : -mean;
    }
    // Whether encoders write the table and the pad bits.
    __device__ bool is_good(size_t k) const {
        for (unsigned q = 0; q < (bits == 2 ? 4 : bits == 1 ? 1 : 0); q++) {
            const unsigned of = __float_as_uint(scale_on_wire(table, q));
            if ((bits == 1 ? of : of & 0x7fffffffu) >= INFINITE) return false;
        }
        const unsigned used = (unsigned)(k * bits % 8);
        return used == 0 || values[k * bits / 8] >> used == 0;
    }
    __device__ bool is_finite(size_t j) const {
        if (bits == 16)
            return ((values[2 * j] | (unsigned)values[2 * j + 1] << 8) & TERSE_F16_INFINITE) != TERSE_F16_INFINITE;
        return bits < 16 || magnitude_bits(at(j)) < INFINITE;
    }
};

constexpr unsigned MARKS = 32 * THREADS;  // of a tile: a lane reads 32

// The index of each mark, to chosen. *bad: other than k marks, one behind the last, or an index that is n or more.
template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_read_marks(Index *chosen, search *s, unsigned long long *states, size_t tiles, const uint8_t *indices,
                     terse_index_layout l, size_t n, size_t k, uint64_t *bad) {
    __shared__ unsigned long long next, before;
    __shared__ unsigned of_warps[WARPS];
    const unsigned lane = lane_of_warp(), warp = threadIdx.x / WARP;
    const size_t first = l.marks_at / 8;
    for (;;) {
        if (threadIdx.x == 0) next = atomicAdd(&s->next_tile, 1ull);
        __syncthreads();
        const size_t tile = next;
        if (tile >= tiles) return;
        const size_t byte = first + 4 * (tile * THREADS + threadIdx.x);
        unsigned word = 0;
        for (unsigned b = 0; b < 4 && byte + b < l.bytes; b++) word |= (unsigned)indices[byte + b] << 8 * b;
        if (byte == first) word &= ~0u << l.marks_at % 8;
        const unsigned own = (unsigned)__popc(word);
        unsigned up_to = own;
#pragma unroll
        for (unsigned stride = 1; stride < WARP; stride *= 2) {
            const unsigned other = __shfl_up_sync(EVERY_LANE, up_to, stride);
            if (lane >= stride) up_to += other;
        }
        if (lane == WARP - 1) of_warps[warp] = up_to;
        __syncthreads();
        if (warp == 0) {
            unsigned of_tile = 0;
            for (unsigned w = 0; w < WARPS; w++) of_tile += of_warps[w];
            const unsigned long long all = before_tile(states, tile, of_tile);
            if (lane == 0) {
                before = all;
                if (tile == tiles - 1 && all + of_tile != k) refuse(bad, 0);
            }
        }
        __syncthreads();
        size_t j = (size_t)before + up_to - own;
        for (unsigned w = 0; w < warp; w++) j += of_warps[w];
        for (; word; word &= word - 1, j++) {
            const size_t place = 8 * byte + (unsigned)__ffs((int)word) - 1 - (size_t)l.marks_at;
            if (place >= l.marks || j >= k) {
                refuse(bad, j);
                break;
            }
            const size_t index = ((place - l.step * j) << l.low) + index_at(indices, l.bytes, j, (unsigned)l.low);
            if (index >= n) refuse(bad, j);
            else chosen[j] = (Index)index;
        }
    }
}

// The indices of a wire: of `width` bits each, or as they were read from marks.
template <class Index>
struct places {
    const uint8_t *indices;
    size_t bytes;
    unsigned width;
    const Index *chosen;  // null: not from marks

    __device__ size_t at(size_t j) const { return chosen ? (size_t)chosen[j] : index_at(indices, bytes, j, width); }
};

// *bad = the first index that does not ascend below n, or whose float is not finite; 0 for a bad table or pad bits.
template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_check_wire(places<Index> in, kept_on_wire kept, size_t n, size_t k, uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    if (first_thread() == 0 && !kept.is_good(k)) refuse(bad, 0);
    for (size_t j = first_thread(); j < k; j += all_threads()) {
        const size_t index = in.at(j);
        const bool ascends = j == 0 || index > in.at(j - 1);
        if (!ascends || index >= n || !kept.is_finite(j)) refuse(bad, j);
    }
}

// No two indices are the same.
template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_decode_add(float *sum, places<Index> in, kept_on_wire kept, size_t k, float scale, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t j = first_thread(); j < k; j += all_threads()) sum[in.at(j)] += scale * kept.at(j);
}

static bool short_indices(size_t n) { return n <= TERSE_SHORT_INDICES; }

// The workspace, in bytes from its beginning; what encoding expects to be 0 comes first.
//
//   search | states of tiles: above, equal; or of marks | meaning | words of the indices || the kept indices | the kept
//   values | partial sums
struct room {
    size_t states, meaning_at, words, zeros, chosen, kept, partials, all;
};

static size_t mark_tiles(const terse_index_layout &l) {
    return l.marks ? divided_up(divided_up(l.marks_at % 8 + l.marks, 8), MARKS / 8) : 0;
}

static room room_of(size_t n, const terse_codec_options *o) {
    const top_k_wire wire = top_k_wire_of(n, o);
    const bool as_they_are = o->values == TERSE_VALUES_F32, has_table = wire.indices > 0;
    const size_t of_x = 2 * divided_up(n, TILE), of_marks = mark_tiles(wire.layout), k = o->k;
    room r;
    r.states = sizeof(search);
    r.meaning_at = r.states + sizeof(unsigned long long) * (of_x > of_marks ? of_x : of_marks);
    r.words = r.meaning_at + (has_table ? sizeof(meaning) : 0);
    r.zeros = r.words + (wire.layout.marks ? whole_words(wire.layout.bytes) : 0);
    r.chosen = r.zeros;
    r.kept = r.chosen + whole_words(k * (short_indices(n) ? 4 : 8));
    r.partials = r.kept + (as_they_are ? 0 : whole_words(4 * k));
    r.all = r.partials + (has_table ? 4 * sizeof(double) * divided_up(k, TERSE_REDUCTION_CHUNK) : 0);
    return r;
}

static size_t workspace_bytes(size_t n, const terse_codec_options *o) { return room_of(n, o).all; }

// One after the other, until one cannot be launched.
#define THEN(call) \
    if (status == TERSE_CODEC_OK) status = call

// The table and the values of the kept floats, which lie in the workspace.
template <class Index>
static terse_codec_status write_values(uint8_t *wire, const top_k_wire &parts, const terse_codec_options *o,
                                       uint8_t *workspace, const room &r, uint64_t *bad, void *stream) {
    const float *const kept = (const float *)(workspace + r.kept);
    const search *const s = (const search *)workspace;
    meaning *const m = (meaning *)(workspace + r.meaning_at);
    double *const partials = (double *)(workspace + r.partials);
    uint8_t *const values = wire + parts.values, *const table = wire + parts.table;
    const size_t k = o->k;
    if (o->values == TERSE_VALUES_F16)
        return launch(top_k_halves<Index>, divided_up(k, THREADS), THREADS, stream, values, kept,
                      (const Index *)(workspace + r.chosen), k, s, bad);
    const slots all = slots_of({k, 1, k, nullptr}, TERSE_REDUCTION_CHUNK);
    terse_codec_status status = TERSE_CODEC_OK;
    const unsigned bits = o->values == TERSE_VALUES_2BIT ? 2 : 1;
    if (bits == 1) {
        THEN(sum_all<MAGNITUDES>(partials, kept, nullptr, nullptr, all, stream));
        THEN(launch(top_k_magnitude, 1, WARP, stream, table, partials, all));
    } else {
        THEN(sum_all<PLAIN>(partials, kept, nullptr, nullptr, all, stream));
        THEN(launch(top_k_mean, 1, WARP, stream, m, partials, all));
        THEN(sum_all<SQUARES>(partials, kept, nullptr, &m->mean, all, stream));
        THEN(launch(top_k_borders, 1, WARP, stream, m, partials, all));
        THEN(launch(top_k_sum_bins, divided_up(all.count, SUM_THREADS / 16), SUM_THREADS, stream, partials, m, kept,
                    all, s));
        THEN(launch(top_k_table, 1, WARP, stream, table, partials, m, all));
    }
    THEN(launch(top_k_codes, divided_up(divided_up(k * bits, 8), THREADS), THREADS, stream, values, kept, k, bits, m,
                s));
    return status;
}

template <class Index>
static terse_codec_status choose(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,
                                 uint8_t *workspace, const room &r, uint64_t *bad, void *stream) {
    search *const s = (search *)workspace;
    unsigned long long *const states = (unsigned long long *)(workspace + r.states);
    Index *const chosen = (Index *)(workspace + r.chosen);
    const top_k_wire parts = top_k_wire_of(n, o);
    const terse_index_layout &l = parts.layout;
    const size_t k = o->k, tiles = divided_up(n, TILE), blocks = tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS;
    const bool as_they_are = o->values == TERSE_VALUES_F32;
    uint8_t *const indices = wire + parts.indices, *const values = as_they_are ? wire + parts.values
                                                                               : workspace + r.kept;
    terse_codec_status status = launch(top_k_choose<Index>, blocks, THREADS, stream, values, multiples_of(4, values),
                                       chosen, s, states, tiles, x, n, k, bad);
    const unsigned low = (unsigned)l.low;
    if (l.marks) {
        unsigned *const words = (unsigned *)(workspace + r.words);
        THEN(launch(top_k_set_bits<Index>, divided_up(k, THREADS), THREADS, stream, words, chosen, k, low, l.step,
                    (size_t)l.marks_at, bad));
        THEN(launch(top_k_copy_bytes, divided_up(l.bytes, THREADS), THREADS, stream, indices, words, l.bytes, bad));
    } else if (low) {
        THEN(launch(top_k_pack<Index>, divided_up(k, WARPS * PACKED), THREADS, stream, indices, chosen, k, low,
                    low % 4 == 0 && multiples_of(4, indices), bad));
    }
    if (!as_they_are) THEN(write_values<Index>(wire, parts, o, workspace, r, bad, stream));
    return status;
}

// 256 threads throughout. Counting strides over x, 6 blocks a multiprocessor: a block's 8 KiB of counts are added to
// all others' once.
static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    search *const s = (search *)workspace;
    const room r = room_of(n, o);
    const size_t units = divided_up(n, WARPS * COUNTED), blocks = units < MOST_BLOCKS ? units : MOST_BLOCKS,
                 samples = top_k_samples(n);
    terse_codec_status status = terse_cuda_status(cudaMemsetAsync(workspace, 0, r.zeros, (cudaStream_t)stream));
    if (samples) THEN(launch(top_k_sample, divided_up(samples, 4 * THREADS), THREADS, stream, s, x, n, o->k, samples));
    for (unsigned round = samples ? 0 : 1; round < 4; round++)
        THEN(launch(top_k_count, blocks, THREADS, stream, s, x, n, o->k, bad));
    const auto choosing = short_indices(n) ? choose<unsigned> : choose<unsigned long long>;
    THEN(choosing(wire, x, n, o, (uint8_t *)workspace, r, bad, stream));
    return status;
}

template <class Index>
static terse_codec_status read_and_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                       uint8_t *workspace, uint64_t *bad, void *stream) {
    const room r = room_of(n, o);
    const top_k_wire parts = top_k_wire_of(n, o);
    const terse_index_layout &l = parts.layout;
    const size_t k = o->k, blocks = divided_up(k, THREADS), tiles = mark_tiles(l);
    Index *const chosen = (Index *)(workspace + r.chosen);
    const uint8_t *const indices = wire + parts.indices;
    const unsigned bits[] = {32, 16, 2, 1};  // of terse_values
    const kept_on_wire kept = {wire + parts.table, wire + parts.values, bits[o->values]};
    const places<Index> in = {indices, l.bytes, (unsigned)l.low, l.marks ? chosen : nullptr};
    terse_codec_status status = TERSE_CODEC_OK;
    if (l.marks) {
        THEN(terse_cuda_status(cudaMemsetAsync(workspace, 0, r.meaning_at, (cudaStream_t)stream)));
        THEN(launch(top_k_read_marks<Index>, tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS, THREADS, stream, chosen,
                    (search *)workspace, (unsigned long long *)(workspace + r.states), tiles, indices, l, n, k, bad));
    }
    THEN(launch(top_k_check_wire<Index>, blocks, THREADS, stream, in, kept, n, k, bad));
    THEN(launch(top_k_decode_add<Index>, blocks, THREADS, stream, sum, in, kept, k, o->scale, bad));
    return status;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    const auto read = short_indices(n) ? read_and_add<unsigned> : read_and_add<unsigned long long>;
    return read(sum, wire, n, o, (uint8_t *)workspace, bad, stream);
}

extern const terse_codec_cuda terse_top_k_cuda;
const terse_codec_cuda terse_top_k_cuda = {&terse_top_k_scalar, workspace_bytes, encode, decode_add};
