// The indices of the kept elements on the wire: packed, or as marks of Elias-Fano.
#ifndef TERSE_TOP_K_KEPT_INDICES_CUH
#define TERSE_TOP_K_KEPT_INDICES_CUH
#include "search.cuh"
#include "shared/indices/indices.cuh"

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

#endif
