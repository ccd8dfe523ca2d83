// bin-means on a GPU, bit for bit: squares -> rms of each scale group -> sums and counts of its bins -> its table, on
// the wire -> fields. x (n) -> tables (scale groups, m), fields (n).
#include "shared/levels/levels.cuh"
#include "bin_means.h"

constexpr unsigned MOST_BITS = 4, TABLE_THREADS = 256;

// The table of one scale group on the wire.
__device__ inline float entry_of(const uint8_t *wire, size_t r, unsigned m, unsigned entry) {
    return scale_on_wire(wire, r * m + entry);
}

// A warp per scale group. A group that is refused has a rms of 0: the wire is undefined then.
static __global__ void __launch_bounds__(TABLE_THREADS)
    bin_means_rms(double *rms, unsigned long long *counts, const double *partials, const float *x, slots s, unsigned m,
                  uint64_t *bad) {
    for (size_t r = first_warp(); r < s.in.count; r += all_warps()) {
        const size_t begin = s.in.begin(r), end = s.in.begin(r + 1);
        const double squares = sum_of_group(partials, s, r);
        const bool finite = squares - squares == 0;
        if (!finite) refuse_group(bad, x, begin, end);
        if (lane_of_warp() == 0) rms[r] = finite && begin < end ? sqrt(squares / (double)(end - begin)) : 0;
        if (lane_of_warp() < m) counts[r * m + lane_of_warp()] = 0;
    }
}

// The sums of the bins, each in the order of sum_slots: that of bin b of a slot is partials[b * slots + slot].
template <unsigned BITS>
static __global__ void __launch_bounds__(SUM_THREADS)
    bin_means_sums(double *partials, unsigned long long *counts, const double *rms, const float *x, slots s) {
    constexpr unsigned M = 1u << BITS;
    const unsigned j = threadIdx.x % 16, half = 0xffffu << (lane_of_warp() & 16);
    for (size_t slot = first_thread() / 16; slot < s.count; slot += all_threads() / 16) {
        size_t begin, end;
        const size_t r = s.span(slot, &begin, &end);
        const double per_float = rms[r] > 0 ? M / (6 * rms[r]) : 0;
        double partial[M] = {};
        unsigned count[M] = {};
        for (size_t i = begin + j; i < end; i += 16) {
            const double at = (double)x[i] * per_float + M / 2;
            const unsigned bin = at > 0 ? at < M ? (unsigned)at : M - 1 : 0;
#pragma unroll
            for (unsigned b = 0; b < M; b++) partial[b] += bin == b ? (double)x[i] : 0.0, count[b] += bin == b;
        }
#pragma unroll
        for (unsigned b = 0; b < M; b++) {
#pragma unroll
            for (unsigned stride = 8; stride; stride /= 2) {
                const double other = __shfl_down_sync(half, partial[b], stride, 16);
                if (j < stride) partial[b] += other;
            }
            if (j == 0) partials[b * s.count + slot] = partial[b];
            if (count[b]) atomicAdd(&counts[r * M + b], (unsigned long long)count[b]);
        }
    }
}

// A warp per scale group.
static __global__ void __launch_bounds__(TABLE_THREADS)
    bin_means_tables(uint8_t *wire, const double *partials, const unsigned long long *counts, const double *rms,
                     slots s, unsigned m) {
    const double largest = (double)0x1.fffffep127f;
    for (size_t r = first_warp(); r < s.in.count; r += all_warps())
        for (unsigned b = 0; b < m; b++) {
            const double sum = sum_of_group(partials + b * s.count, s, r);
            if (lane_of_warp() != 0) continue;
            const double middle = (b + 0.5) * (6 * rms[r] / m) - 3 * rms[r];
            const double within = middle > largest ? largest : middle < -largest ? -largest : middle;
            const unsigned long long count = counts[r * m + b];
            put_scale(wire, r * m + b, rms[r] > 0 ? (float)(count ? sum / (double)count : within) : 0.0f);
        }
}

// A thread writes 8 fields, `bits` bytes, and reads a table again only where the scale group changes.
static __global__ void __launch_bounds__(TABLE_THREADS)
    bin_means_write(uint8_t *fields, const uint8_t *wire, const float *x, size_t n, scale_groups in, unsigned bits) {
    const unsigned m = 1u << bits;
    const size_t bytes = divided_up(n * bits, 8);
    for (size_t eight = first_thread(); 8 * eight < n; eight += all_threads()) {
        double midpoints[(1u << MOST_BITS) - 1];
        size_t group_end = 0;
        uint64_t packed = 0;
        for (unsigned k = 0; k < 8 && 8 * eight + k < n; k++) {
            const size_t i = 8 * eight + k;
            if (i >= group_end) {
                const size_t r = in.of(i);
                group_end = in.begin(r + 1);
                for (unsigned e = 0; e + 1 < m; e++)
                    midpoints[e] = ((double)entry_of(wire, r, m, e) + (double)entry_of(wire, r, m, e + 1)) / 2;
            }
            unsigned nearest = 0;
            for (unsigned e = 0; e + 1 < m; e++) nearest += midpoints[e] < (double)x[i];
            packed |= (uint64_t)nearest << bits * k;
        }
        for (unsigned b = 0; b < bits && eight * bits + b < bytes; b++)
            fields[eight * bits + b] = (uint8_t)(packed >> 8 * b);
    }
}

__device__ inline unsigned field_at(const uint8_t *fields, size_t i, unsigned bits) {
    const uint8_t *const at = fields + i * bits / 8;
    const unsigned shift = i * bits % 8;
    unsigned value = at[0] >> shift;
    if (shift + bits > 8) value |= (unsigned)at[1] << (8 - shift);
    return value & ((1u << bits) - 1);
}

static __global__ void __launch_bounds__(TABLE_THREADS)
    bin_means_check(const uint8_t *wire, size_t entries, uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t at = first_thread(); at < entries; at += all_threads())
        if (magnitude_bits(scale_on_wire(wire, at)) >= INFINITE) refuse(bad, at);
}

static __global__ void __launch_bounds__(TABLE_THREADS)
    bin_means_add(float *sum, const uint8_t *wire, const uint8_t *fields, size_t n, scale_groups in, unsigned bits,
                  float by, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned m = 1u << bits;
    for (size_t i = first_thread(); i < n; i += all_threads())
        sum[i] += entry_of(wire, in.of(i), m, field_at(fields, i, bits)) * by;
}

// ends of segments | rms, of each scale group | counts, m for each | partial sums, m for each slot
static size_t workspace_bytes(size_t n, const terse_codec_options *o) {
    const size_t groups = terse_scale_group_count(n, o), m = (size_t)1 << o->bits;
    return bytes_of_ends(o) + 8 * groups + 8 * m * groups + 8 * m * slot_count(n, o, TERSE_REDUCTION_CHUNK);
}

#define THEN(call) \
    if (status == TERSE_CODEC_OK) status = call

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const slots s = slots_of(in, TERSE_REDUCTION_CHUNK);
    const unsigned m = 1u << o->bits;
    double *const rms = (double *)((uint8_t *)workspace + bytes_of_ends(o));
    unsigned long long *const counts = (unsigned long long *)(rms + in.count);
    double *const partials = (double *)(counts + m * in.count);
    const auto sums = o->bits == 2 ? bin_means_sums<2> : o->bits == 3 ? bin_means_sums<3> : bin_means_sums<4>;
    THEN(sum_all<SQUARES>(partials, x, nullptr, nullptr, s, stream));
    THEN(launch(bin_means_rms, divided_up(in.count, TABLE_THREADS / WARP), TABLE_THREADS, stream, rms, counts, partials,
                x, s, m, bad));
    THEN(launch(sums, divided_up(s.count, SUM_THREADS / 16), SUM_THREADS, stream, partials, counts, rms, x, s));
    THEN(launch(bin_means_tables, divided_up(in.count, TABLE_THREADS / WARP), TABLE_THREADS, stream, wire, partials,
                counts, rms, s, m));
    THEN(launch(bin_means_write, divided_up(n, 8 * TABLE_THREADS), TABLE_THREADS, stream, wire + 4 * m * in.count, wire,
                x, n, in, o->bits));
    return status;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const size_t entries = in.count << o->bits;
    THEN(launch(bin_means_check, divided_up(entries, TABLE_THREADS), TABLE_THREADS, stream, wire, entries, bad));
    THEN(launch(bin_means_add, divided_up(n, TABLE_THREADS), TABLE_THREADS, stream, sum, wire, wire + 4 * entries, n,
                in, o->bits, o->scale, bad));
    return status;
}

extern const terse_codec_cuda terse_bin_means_cuda;
const terse_codec_cuda terse_bin_means_cuda = {&terse_bin_means_scalar, workspace_bytes, encode, decode_add};
