// vote on a GPU: P ranks' signs (P, n) -> one sign, or a count, per element. The signs stay packed; the counters of
// vote.h are in registers.
//
//   a thread's 128 elements of every rank = 16 bytes, four 32-bit words; plane[k] = bit k of start + the number of plus
//   votes the majority overflows into plane[top] exactly where the count reaches its threshold
#include "launch.cuh"
#include "vote.h"

constexpr unsigned ELEMENTS = 128, BYTES = ELEMENTS / 8;

struct elements {
    unsigned of[4];
};

template <unsigned ROOM>
struct vote_list {
    const uint8_t *of[ROOM];
};  // the ranks that are present; a kernel's argument, so nothing is copied or allocated

enum election { MAJORITY, MAJORITY_OR_ZERO, TALLY };
struct results {
    uint8_t *of[VOTE_PLANES];
};

struct count {
    election kind;
    unsigned ranks, start, top;
};

template <bool ALIGNED>
__device__ elements load(const uint8_t *from, size_t at, size_t bytes) {
    elements v = {};
    if (ALIGNED && bytes == BYTES) {
        const uint4 four = *(const uint4 *)(from + at);
        v = {four.x, four.y, four.z, four.w};
    } else {
#pragma unroll
        for (unsigned b = 0; b < BYTES; b++)
            if (b < bytes) v.of[b / 4] |= (unsigned)from[at + b] << 8 * (b % 4);
    }
    return v;
}

template <bool ALIGNED>
__device__ void store(uint8_t *to, size_t at, size_t bytes, size_t n, const elements &v) {
    if (ALIGNED && bytes == BYTES && 8 * (at + BYTES) <= n) {
        *(uint4 *)(to + at) = make_uint4(v.of[0], v.of[1], v.of[2], v.of[3]);
        return;
    }
#pragma unroll
    for (unsigned b = 0; b < BYTES; b++) {
        if (b >= bytes) break;
        const size_t left = n - 8 * (at + b);  // pad bits are 0 on every wire
        to[at + b] = (uint8_t)(v.of[b / 4] >> 8 * (b % 4) & (left < 8 ? (1u << left) - 1 : 0xff));
    }
}

// sum + a + b, per element: the low bit stays in sum, the carry is returned.
__device__ inline unsigned full_add(unsigned &sum, unsigned a, unsigned b) {
    const unsigned carry = (sum & a) | ((sum ^ a) & b);
    sum ^= a ^ b;
    return carry;
}

// Adds a carry to the planes from k on.
template <unsigned PLANES>
__device__ inline void ripple(unsigned (&plane)[PLANES], unsigned from, unsigned carry) {
#pragma unroll
    for (unsigned k = 0; k < PLANES; k++)
        if (k >= from) {
            const unsigned before = plane[k];
            plane[k] = before ^ carry;
            carry &= before;
        }
}

template <unsigned PLANES, unsigned ROOM, bool ALIGNED>
__global__ void __launch_bounds__(256)
    vote_elect(const __grid_constant__ results out, const __grid_constant__ vote_list<ROOM> votes, size_t n, count c) {
    const size_t all = n / 8 + (n % 8 != 0);
    for (size_t at = first_thread() * BYTES; at < all; at += all_threads() * BYTES) {
        const size_t bytes = all - at < BYTES ? all - at : BYTES;
        unsigned plane[4][PLANES];
#pragma unroll
        for (unsigned w = 0; w < 4; w++)
#pragma unroll
            for (unsigned k = 0; k < PLANES; k++) plane[w][k] = c.start >> k & 1 ? ~0u : 0;

        unsigned r = 0;
        for (; r + 8 <= c.ranks; r += 8) {  // eight votes at a time: 7 full adders, and one carry that goes past the
                                            // fours
            elements v[8];
#pragma unroll
            for (unsigned j = 0; j < 8; j++) v[j] = load<ALIGNED>(votes.of[r + j], at, bytes);
#pragma unroll
            for (unsigned w = 0; w < 4; w++) {
                unsigned (&p)[PLANES] = plane[w];
                const unsigned two_a = full_add(p[0], v[0].of[w], v[1].of[w]),
                               two_b = full_add(p[0], v[2].of[w], v[3].of[w]);
                const unsigned four_a = full_add(p[1], two_a, two_b);
                const unsigned two_c = full_add(p[0], v[4].of[w], v[5].of[w]),
                               two_d = full_add(p[0], v[6].of[w], v[7].of[w]);
                const unsigned four_b = full_add(p[1], two_c, two_d);
                ripple(p, 3, full_add(p[2], four_a, four_b));
            }
        }
        for (; r < c.ranks; r++) {
            const elements v = load<ALIGNED>(votes.of[r], at, bytes);
#pragma unroll
            for (unsigned w = 0; w < 4; w++) ripple(plane[w], 0, v.of[w]);
        }

        elements reached = {}, decided = {};
#pragma unroll
        for (unsigned k = 0; k < PLANES; k++) {
            if (c.kind == TALLY && k <= c.top)
                store<ALIGNED>(out.of[k], at, bytes, n, {plane[0][k], plane[1][k], plane[2][k], plane[3][k]});
            if (c.kind != TALLY && k == c.top) reached = {plane[0][k], plane[1][k], plane[2][k], plane[3][k]};
        }
        if (c.kind == TALLY) continue;
        if (c.kind == MAJORITY_OR_ZERO) {
#pragma unroll
            for (unsigned w = 0; w < 4; w++) {
                unsigned beyond = c.ranks % 2 ? ~0u : 0;  // a tie of even ranks is a count of exactly T: all planes
                                                          // below the top are 0
#pragma unroll
                for (unsigned k = 0; k < PLANES; k++)
                    if (k < c.top) beyond |= plane[w][k];
                decided.of[w] = ~reached.of[w] | beyond;
                reached.of[w] &= beyond;
            }
            store<ALIGNED>(out.of[1], at, bytes, n, decided);
        }
        store<ALIGNED>(out.of[0], at, bytes, n, reached);
    }
}

template <unsigned PLANES, unsigned ROOM>
static terse_codec_status launch_for(const results &out, size_t outs, const uint8_t *const *votes, size_t n,
                                     const count &c, void *stream) {
    vote_list<ROOM> present = {};
    bool aligned = true;
    for (size_t r = 0, p = 0; p < c.ranks; r++)
        if (votes[r]) present.of[p++] = votes[r], aligned = aligned && multiples_of(16, votes[r]);
    for (size_t k = 0; k < outs; k++) aligned = aligned && multiples_of(16, out.of[k]);
    // 256 threads with at most 255 registers each; 8 loads of 16 bytes a thread are on their way at once, far more than
    // it takes to keep the memory busy even at a quarter of the occupancy.
    const auto kernel = aligned ? vote_elect<PLANES, ROOM, true> : vote_elect<PLANES, ROOM, false>;
    return launch(kernel, divided_up(n, 256 * ELEMENTS), 256, stream, out, present, n, c);
}

// Few ranks need few planes and a short list: more threads fit a multiprocessor, and less goes with the launch.
static terse_codec_status elect(const results &out, size_t outs, const uint8_t *const *votes, size_t n, const count &c,
                                void *stream) {
    if (c.top < 4 && c.ranks <= 15) return launch_for<4, 15>(out, outs, votes, n, c, stream);
    if (c.top < 7 && c.ranks <= 127) return launch_for<7, 127>(out, outs, votes, n, c, stream);
    return launch_for<VOTE_PLANES, TERSE_VOTE_MAX_RANKS>(out, outs, votes, n, c, stream);
}

// 0 if there is no vote to count: all ranks are absent, or there are too many.
static unsigned present_among(const uint8_t *const *votes, size_t ranks) {
    unsigned present = 0;
    if (ranks <= TERSE_VOTE_MAX_RANKS)
        for (size_t r = 0; r < ranks; r++) present += votes[r] != nullptr;
    return present;
}

static count counting_to(election kind, unsigned ranks, unsigned T) {
    unsigned top = 0;
    while (1u << top < T || 1u << top <= ranks - T) top++;  // room for T, and for ranks - T beyond it
    return {kind, ranks, (1u << top) - T, top};
}

terse_codec_status terse_vote_cuda_majority(uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n,
                                            terse_zero tie, void *stream) {
    const unsigned present = present_among(votes, ranks);
    if (!present) return TERSE_CODEC_BAD_RANKS;
    if (tie != TERSE_ZERO_MINUS && tie != TERSE_ZERO_PLUS) return TERSE_CODEC_BAD_ZERO;
    const unsigned threshold = tie == TERSE_ZERO_PLUS ? (present + 1) / 2 : present / 2 + 1;
    return elect({{out}}, 1, votes, n, counting_to(MAJORITY, present, threshold), stream);
}

terse_codec_status terse_vote_cuda_majority_or_zero(uint8_t *plus, uint8_t *nonzero, const uint8_t *const *votes,
                                                    size_t ranks, size_t n, void *stream) {
    const unsigned present = present_among(votes, ranks);
    if (!present) return TERSE_CODEC_BAD_RANKS;
    return elect({{plus, nonzero}}, 2, votes, n, counting_to(MAJORITY_OR_ZERO, present, (present + 1) / 2), stream);
}

terse_codec_status terse_vote_cuda_tally(uint8_t *const *planes, const uint8_t *const *votes, size_t ranks, size_t n,
                                         void *stream) {
    const unsigned present = present_among(votes, ranks);
    if (!present) return TERSE_CODEC_BAD_RANKS;
    results out = {};
    unsigned all = 0;
    for (; ranks >> all; all++)
        out.of[all] = planes[all];  // the number of planes does not depend on which ranks are absent
    return elect(out, all, votes, n, {TALLY, present, 0, all - 1}, stream);
}
