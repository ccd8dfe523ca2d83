// terngrad on a GPU: scale = max |x|, or `clip` standard deviations; P(+-1) = |x| / scale. x (n) -> scales (scale
// groups), codes (4, Q = ceil(n / 4)).
//
// A warp writes 256 bytes: 256 codes of each quarter. Random words come in groups of 64 elements, and a quarter may
// begin anywhere in a group. So the warp walks the six groups that can hold its part of a quarter, and joins the four
// codes of a byte in shared memory.
#include "shared/fields/fields.cuh"
#include "shared/reductions/reductions.cuh"
#include "terngrad.h"

// mean of each scale group; a warp per scale group
__global__ void __launch_bounds__(256) terngrad_means(double *means, const double *partials, slots s) {
    for (size_t r = first_warp(); r < s.in.count; r += all_warps()) {
        const size_t length = s.in.begin(r + 1) - s.in.begin(r);
        const double sum = sum_of_group(partials, s, r);
        if (lane_of_warp() == 0) means[r] = length ? sum / (double)length : 0;
    }
}

// `partials`: squares about the mean, where clip > 0. A warp per scale group.
__global__ void __launch_bounds__(256)
    terngrad_scales(uint8_t *wire, const unsigned *largest, slots of_largest, const double *partials, slots of_sums,
                    float clip, const float *x, uint64_t *bad) {
    const scale_groups &in = of_largest.in;
    for (size_t r = first_warp(); r < in.count; r += all_warps()) {
        const size_t begin = in.begin(r), end = in.begin(r + 1);
        float scale = largest_of_group(largest, of_largest, r);
        if (magnitude_bits(scale) >= INFINITE) {
            refuse_group(bad, x, begin, end);
            scale = 0.0f;  // the wire is undefined then, but the kernel that writes it needs a number
        } else if (clip > 0.0f && begin < end) {
            const double bound = (double)clip * sqrt(sum_of_group(partials, of_sums, r) / (double)(end - begin));
            if (bound > 0.0 && bound < (double)scale) scale = (float)bound;
        }
        if (lane_of_warp() == 0) put_scale(wire, r, scale);
    }
}

__device__ inline double odds_of(float scale) { return scale > 0.0f ? 1.0 / (double)scale * 0x1p31 : 0.0; }

__global__ void __launch_bounds__(256) terngrad_encode(uint8_t *bytes, const uint8_t *wire, const float *x,
                                                       scale_groups in, draws d, size_t quarter, bool aligned) {
    __shared__ uint64_t room[256 / WARP][4][FIELDS / 8];
    const unsigned lane = lane_of_warp(), j = lane % 16;
    uint64_t (&codes)[4][FIELDS / 8] = room[threadIdx.x / WARP];
    for (size_t base = first_warp() * FIELDS; base < quarter; base += all_warps() * FIELDS) {
        for (unsigned k = 0; k < 4; k++) {
            const size_t start = k * quarter + base, stop = start + FIELDS < in.n ? start + FIELDS : in.n;
            const size_t first = start < in.n ? in.of(start) : 0;
            const bool one_group = stop <= in.begin(first + 1);
            double odds = odds_of(scale_on_wire(wire, first));
#pragma unroll
            for (unsigned round = 0; round < 3; round++) {
                if (round == 2 && start % 64 == 0) break;  // four groups are all, where they begin with the quarter
                const size_t group = start / 64 + 2 * round + lane / 16;
                unsigned word[4];
                d.words(group, j, word);
#pragma unroll
                for (unsigned w = 0; w < 4; w++) {
                    const size_t i = 64 * group + j + 16 * w, at = i - start;  // before the start: at is huge
                    if (at >= FIELDS) continue;
                    unsigned code = 0;  // past the end, and past the quarter
                    if (i < in.n && base + at < quarter) {
                        const float value = x[i];
                        if (!one_group) odds = odds_of(scale_on_wire(wire, in.of(i)));
                        code = as_double(word[w] >> 1) >= fabs((double)value) * odds ? 1 : value < 0.0f ? 0 : 2;
                    }
                    ((uint8_t *)codes[k])[at] = (uint8_t)code;
                }
            }
        }
        __syncwarp();
        const size_t at = base + 8 * lane;
        const uint64_t eight = codes[0][lane] | codes[1][lane] << 2 | codes[2][lane] << 4 | codes[3][lane] << 6;
        if (at < quarter) store_fields(bytes + at, {eight, 0}, 8, quarter - at, aligned);
        __syncwarp();
    }
}

constexpr unsigned BYTES_READ = 4 * WARP;  // a lane's 16 sums are on their way at once

__global__ void __launch_bounds__(256, 3)
    terngrad_decode_add(float *sum, const uint8_t *bytes, const uint8_t *wire, scale_groups in, size_t quarter,
                        float by, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t base = first_warp() * BYTES_READ; base < quarter; base += all_warps() * BYTES_READ) {
        float v[4][4];
        unsigned byte[4];
#pragma unroll
        for (unsigned m = 0; m < 4; m++) {
            const size_t at = base + m * WARP + lane_of_warp();
            byte[m] = at < quarter ? bytes[at] : 0;
#pragma unroll
            for (unsigned k = 0; k < 4; k++)
                v[k][m] = at < quarter && k * quarter + at < in.n ? sum[k * quarter + at] : 0.0f;
        }
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            const size_t start = k * quarter + base, stop = start + BYTES_READ < in.n ? start + BYTES_READ : in.n;
            const size_t first = start < in.n ? in.of(start) : 0;
            const bool one_group = stop <= in.begin(first + 1);
            float value = scale_on_wire(wire, first) * by;
#pragma unroll
            for (unsigned m = 0; m < 4; m++) {
                const size_t at = base + m * WARP + lane_of_warp(), i = k * quarter + at;
                if (at >= quarter || i >= in.n) continue;
                if (!one_group) value = scale_on_wire(wire, in.of(i)) * by;
                const unsigned code = byte[m] >> 2 * k & 3;
                sum[i] = v[k][m] + (code == 0 ? -value : code == 1 ? 0.0f * by : value);
            }
        }
    }
}

// ends of segments | largest of slots | sums of slots | means
static size_t workspace_bytes(size_t n, const terse_codec_options *o) {
    const size_t largest = bytes_of_ends(o) + 8 * slot_count(n, o, LARGEST_CHUNK);
    return o->clip > 0.0f ? largest + 8 * slot_count(n, o, TERSE_REDUCTION_CHUNK) + 8 * terse_scale_group_count(n, o)
                          : largest;
}

// 256 threads throughout: 8 warps, 8 blocks a multiprocessor.
static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const slots of_largest = slots_of(in, LARGEST_CHUNK), of_sums = slots_of(in, TERSE_REDUCTION_CHUNK);
    unsigned *const largest = (unsigned *)((uint8_t *)workspace + bytes_of_ends(o));
    double *const sums = (double *)((uint8_t *)largest + 8 * of_largest.count), *const means = sums + of_sums.count;
    const size_t quarter = terse_terngrad_quarter(n);
    uint8_t *const bytes = wire + 4 * in.count;
    if (status == TERSE_CODEC_OK) status = largest_all(largest, x, of_largest, stream);
    if (o->clip > 0.0f) {
        if (status == TERSE_CODEC_OK) status = sum_all<PLAIN>(sums, x, nullptr, nullptr, of_sums, stream);
        if (status == TERSE_CODEC_OK)
            status = launch(terngrad_means, divided_up(in.count, 8), 256, stream, means, sums, of_sums);
        if (status == TERSE_CODEC_OK) status = sum_all<SQUARES>(sums, x, nullptr, means, of_sums, stream);
    }
    if (status == TERSE_CODEC_OK)
        status = launch(terngrad_scales, divided_up(in.count, 8), 256, stream, wire, largest, of_largest, sums, of_sums,
                        o->clip, x, bad);
    const draws d = {o->seed, o->step, o->index};
    if (status == TERSE_CODEC_OK)
        status = launch(terngrad_encode, divided_up(quarter, 8 * FIELDS), 256, stream, bytes, wire, x, in, d, quarter,
                        multiples_of(4, bytes));
    return status;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const size_t quarter = terse_terngrad_quarter(n);
    if (status == TERSE_CODEC_OK)
        status = launch(check_scales, divided_up(in.count, 256), 256, stream, wire, in.count, 1.0, bad);
    if (status == TERSE_CODEC_OK)
        status = launch(terngrad_decode_add, divided_up(quarter, 8 * BYTES_READ), 256, stream, sum, wire + 4 * in.count,
                        wire, in, quarter, o->scale, bad);
    return status;
}

extern const terse_codec_cuda terse_terngrad_cuda;
const terse_codec_cuda terse_terngrad_cuda = {&terse_terngrad_scalar, workspace_bytes, encode, decode_add};
