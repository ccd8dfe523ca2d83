// fields.h on a GPU: x (n) <-> whole numbers of `width` bits side by side.
//
//   a warp's 256 elements = 4 groups of 64; lane j or 16 + j of it does elements j, j + 16, j + 32, j + 48 of a group,
//   as Philox gives words, so that floats are read 64 bytes side by side; their fields change places in shared memory,
//   and lane l packs fields 8 l .. 8 l + 7 into `width` bytes. Decoding goes the other way.
//
//   widths of 4, 8 and 16, where 512 elements share a scale and all is aligned: lane 4 g + a has floats 4 a .. 4 a + 3
//   of each 16 of group g, four loads of 16 bytes, and all four words of four Philox blocks; decoding, four neighbours'
//   fields are 16 to 64 bits, and nothing changes places
//
// Two small structs define a field: a Writing (factor for a scale; field of a number; refused numbers; the field of
// zero) and a Reading (unit for a scale; value of a field).
#ifndef TERSE_FIELDS_CUH
#define TERSE_FIELDS_CUH
#include "fields.h"
#include "shared/random/random.cuh"
#include "shared/scale-groups/scale_groups.cuh"

constexpr unsigned FIELDS = 256, FIELD_THREADS = 256, FIELD_WARPS = FIELD_THREADS / WARP;

// Elements that share a scale, and where the scales are: on the wire, or (while encoding) in the workspace.
struct scaled {
    scale_groups in;
    const uint8_t *scales;  // null: all are 1

    __device__ float of_group(size_t r) const { return scales ? scale_on_wire(scales, r) : 1.0f; }
};

// Eight fields of one lane, least significant bit first.
struct eight_fields {
    uint64_t low, high;
};

__device__ inline void store_fields(uint8_t *to, const eight_fields &v, unsigned width, size_t left, bool aligned) {
    if (aligned && left >= width) {
        if (width == 2) *(uint16_t *)to = (uint16_t)v.low;
        else
            for (unsigned b = 0; b < width; b += 4)
                ((unsigned *)to)[b / 4] = (unsigned)((b < 8 ? v.low : v.high) >> 8 * (b % 8));
    } else {
        for (unsigned b = 0; b < width && b < left; b++) to[b] = (uint8_t)((b < 8 ? v.low : v.high) >> 8 * (b % 8));
    }
}

__device__ inline eight_fields load_fields(const uint8_t *from, unsigned width, size_t left, bool aligned) {
    eight_fields v = {};
    if (aligned && left >= width) {
        if (width == 2) v.low = *(const uint16_t *)from;
        else
            for (unsigned b = 0; b < width; b += 4)
                (b < 8 ? v.low : v.high) |= (uint64_t)((const unsigned *)from)[b / 4] << 8 * (b % 8);
    } else {
        for (unsigned b = 0; b < width && b < left; b++) (b < 8 ? v.low : v.high) |= (uint64_t)from[b] << 8 * (b % 8);
    }
    return v;
}

// The arguments of a kernel that writes fields.
struct field_target {
    uint8_t *fields;
    size_t n;
    unsigned width;
    bool aligned;
};

// FIELDS elements from `base` on, or as many as there are. `packed`: room for them, of the warp.
template <class Writing>
static __device__ void write_some(const field_target &to_all, const float *x, const scaled &s, const draws &d,
                                  const Writing &w, uint64_t *bad, size_t base, uint64_t *packed) {
    const size_t n = to_all.n;
    const unsigned lane = lane_of_warp(), j = lane % 16, width = to_all.width;
    uint8_t *const staged = (uint8_t *)packed;
    const size_t bytes = divided_up(n * width, 8);
    float v[8];
#pragma unroll
    for (unsigned k = 0; k < 8; k++) {
        const size_t i = base + 64 * (2 * (k / 4) + lane / 16) + j + 16 * (k % 4);
        v[k] = i < n ? x[i] : 0.0f;
    }
    const size_t end = base + FIELDS < n ? base + FIELDS : n, first = s.in.of(base);
    const bool one_group = end <= s.in.begin(first + 1);
    float scale = s.of_group(first);
    double factor = w.factor(scale);
#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
        const unsigned group = 2 * half + lane / 16;
        unsigned word[4] = {};
        if (Writing::DRAWS) d.words(base / 64 + group, j, word);
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            const unsigned at = 64 * group + j + 16 * k;
            const size_t i = base + at;
            unsigned field = 0;
            if (i < n) {
                if (!one_group) scale = s.of_group(s.in.of(i)), factor = w.factor(scale);
                const float value = v[4 * half + k];
                if (w.refuses(value)) refuse(bad, i);
                else field = scale > 0 ? w.field(value, factor, word[k]) : w.zero();
            }
            staged[at] = (uint8_t)field;
        }
    }
    __syncwarp();
    const uint64_t mine = packed[lane];
    eight_fields out = {};
#pragma unroll
    for (unsigned k = 0; k < 8; k++) {
        const uint64_t field = mine >> 8 * k & 0xff;
        if (width == 16) (k < 4 ? out.low : out.high) |= field << 16 * (k % 4);
        else out.low |= field << k * width;
    }
    const size_t to = (base / 8 + lane) * width;
    if (to < bytes) store_fields(to_all.fields + to, out, width, bytes - to, to_all.aligned);
    __syncwarp();  // before the next unit overwrites what was read
}

template <class Writing>
static __global__ void __launch_bounds__(FIELD_THREADS)
    write_fields(field_target to, const float *x, scaled s, draws d, Writing w, uint64_t *bad) {
    __shared__ uint64_t room[FIELD_WARPS][FIELDS / 8];
    for (size_t base = first_warp() * FIELDS; base < to.n; base += all_warps() * FIELDS)
        write_some(to, x, s, d, w, bad, base, room[threadIdx.x / WARP]);
}

// The fields of 64 elements lie 80 bytes apart, so that the lanes of a warp meet in no bank.
constexpr unsigned WHOLE_FIELDS = 2 * FIELDS, GROUP_WORDS = 20;

// The 32-bit words of four bytes each, side by side in `nibbles`, without their upper halves: eight nibbles of a word.
__device__ inline unsigned nibbles_of(unsigned low, unsigned high) {
    low = (low | low >> 4) & 0x00ff00ffu, high = (high | high >> 4) & 0x00ff00ffu;
    return ((low | low >> 8) & 0xffffu) | (high | high >> 8) << 16;
}

template <class Writing, unsigned WIDTH>
static __global__ void __launch_bounds__(FIELD_THREADS, 3)
    write_whole_fields(field_target to, const float *x, scaled s, draws d, Writing w, uint64_t *bad) {
    __shared__ uint64_t rooms[FIELD_WARPS][WHOLE_FIELDS / 64 * GROUP_WORDS / 2];
    const unsigned lane = lane_of_warp(), group = lane / 4, a = lane % 4;
    unsigned *const room = (unsigned *)rooms[threadIdx.x / WARP];
    for (size_t base = first_warp() * WHOLE_FIELDS; base < to.n; base += all_warps() * WHOLE_FIELDS) {
        const size_t first = s.in.of(base);
        if (base + WHOLE_FIELDS > to.n || base + WHOLE_FIELDS > s.in.begin(first + 1)) {
            write_some(to, x, s, d, w, bad, base, rooms[threadIdx.x / WARP]);
            if (base + FIELDS < to.n) write_some(to, x, s, d, w, bad, base + FIELDS, rooms[threadIdx.x / WARP]);
            continue;
        }
        const float *const from = x + base + 64 * group + 4 * a;
        float4 loaded[4];
#pragma unroll
        for (unsigned k = 0; k < 4; k++) loaded[k] = *(const float4 *)(from + 16 * k);
        const float scale = s.of_group(first);
        const double factor = w.factor(scale);
        unsigned out[4] = {};
        bool refused = false;
#pragma unroll
        for (unsigned c = 0; c < 4; c++) {
            unsigned word[4] = {};
            if (Writing::DRAWS) d.words(base / 64 + group, 4 * a + c, word);
#pragma unroll
            for (unsigned k = 0; k < 4; k++) {
                const float value = c == 0 ? loaded[k].x : c == 1 ? loaded[k].y : c == 2 ? loaded[k].z : loaded[k].w;
                refused |= w.refuses(value);  // the field is undefined then
                out[k] |= (w.field(value, factor, word[k]) & 0xff) << 8 * c;
            }
        }
        for (unsigned e = 0; refused && e < 16; e++)
            if (w.refuses(from[e / 4 * 16 + e % 4])) refuse(bad, base + 64 * group + 4 * a + e / 4 * 16 + e % 4);
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            room[group * GROUP_WORDS + 4 * k + a] = scale > 0 ? out[k] : 0x01010101u * w.zero();
        __syncwarp();
        unsigned *const words = (unsigned *)(to.fields + base / 8 * WIDTH);
#pragma unroll
        for (unsigned at = 0; at < WHOLE_FIELDS * WIDTH / 32; at += WARP) {
            const unsigned here = at + lane, element = here * (32 / WIDTH);
            const uint8_t *const staged = (const uint8_t *)(room + element / 64 * GROUP_WORDS) + element % 64;
            if (WIDTH == 4) words[here] = nibbles_of(((const uint2 *)staged)->x, ((const uint2 *)staged)->y);
            if (WIDTH == 8) words[here] = *(const unsigned *)staged;
            if (WIDTH == 16) words[here] = (unsigned)staged[0] | (unsigned)staged[1] << 16;
        }
        __syncwarp();
    }
}

template <class Reading>
static __global__ void __launch_bounds__(FIELD_THREADS)
    read_fields(float *sum, const uint8_t *fields, size_t n, unsigned width, bool aligned, scaled s, Reading reading,
                float by, const uint64_t *bad) {
    __shared__ uint4 room[FIELD_WARPS][FIELDS / 8];
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned lane = lane_of_warp(), mask = (1u << width) - 1;
    const uint16_t *const staged = (const uint16_t *)room[threadIdx.x / WARP];
    const size_t bytes = divided_up(n * width, 8);
    for (size_t base = first_warp() * FIELDS; base < n; base += all_warps() * FIELDS) {
        float v[8];
#pragma unroll
        for (unsigned k = 0; k < 8; k++) {
            const size_t i = base + lane + WARP * k;
            v[k] = i < n ? sum[i] : 0.0f;
        }
        const size_t from = (base / 8 + lane) * width;
        const eight_fields in = from < bytes ? load_fields(fields + from, width, bytes - from, aligned)
                                             : eight_fields{};
        unsigned of[8];
#pragma unroll
        for (unsigned k = 0; k < 8; k++)
            of[k] = (unsigned)(width == 16 ? (k < 4 ? in.low : in.high) >> 16 * (k % 4) : in.low >> k * width) & mask;
        room[threadIdx.x / WARP][lane] = make_uint4(of[0] | of[1] << 16, of[2] | of[3] << 16, of[4] | of[5] << 16,
                                                    of[6] | of[7] << 16);
        __syncwarp();
        const size_t end = base + FIELDS < n ? base + FIELDS : n, first = s.in.of(base);
        const bool one_group = end <= s.in.begin(first + 1);
        double unit = reading.unit(s.of_group(first));
#pragma unroll
        for (unsigned k = 0; k < 8; k++) {
            const size_t i = base + lane + WARP * k;
            if (i >= n) break;
            if (!one_group) unit = reading.unit(s.of_group(s.in.of(i)));
            sum[i] = v[k] + reading.value(staged[lane + WARP * k], unit) * by;
        }
        __syncwarp();
    }
}

template <class Reading, unsigned WIDTH, bool ALIGNED>
static __global__ void __launch_bounds__(FIELD_THREADS)
    read_whole_fields(float *sum, const uint8_t *fields, size_t n, scaled s, Reading reading, float by,
                      const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    const unsigned lane = lane_of_warp();
    for (size_t base = first_warp() * WHOLE_FIELDS; base < n; base += all_warps() * WHOLE_FIELDS) {
        const size_t end = base + WHOLE_FIELDS < n ? base + WHOLE_FIELDS : n, first = s.in.of(base);
        const bool one_group = end <= s.in.begin(first + 1);
        double unit = reading.unit(s.of_group(first));
        if (ALIGNED && one_group && base + WHOLE_FIELDS <= n) {
            float4 *const sums = (float4 *)(sum + base);
            float4 v[4];
            unsigned four[4][2];  // fields of four neighbours
#pragma unroll
            for (unsigned t = 0; t < 4; t++) {
                v[t] = sums[t * WARP + lane];
                const uint8_t *const from = fields + (base / 4 + t * WARP + lane) * (WIDTH / 2);
                four[t][0] = WIDTH == 4 ? *(const uint16_t *)from : *(const unsigned *)from;
                four[t][1] = WIDTH == 16 ? ((const unsigned *)from)[1] : 0;
            }
            const auto added = [&](float to, const unsigned (&of)[2], unsigned k) {
                const unsigned field = WIDTH == 16 ? of[k / 2] >> 16 * (k % 2) & 0xffff
                                                   : of[0] >> WIDTH * k & ((1u << WIDTH) - 1);
                return to + reading.value(field, unit) * by;
            };
#pragma unroll
            for (unsigned t = 0; t < 4; t++)
                sums[t * WARP + lane] = make_float4(added(v[t].x, four[t], 0), added(v[t].y, four[t], 1),
                                                    added(v[t].z, four[t], 2), added(v[t].w, four[t], 3));
        } else {
            for (size_t i = base + lane; i < end; i += WARP) {
                if (!one_group) unit = reading.unit(s.of_group(s.in.of(i)));
                const unsigned field = WIDTH == 4   ? fields[i / 2] >> 4 * (i % 2) & 15
                                       : WIDTH == 8 ? fields[i]
                                                    : fields[2 * i] | (unsigned)fields[2 * i + 1] << 8;
                sum[i] += reading.value(field, unit) * by;
            }
        }
    }
}

// Whether 8 fields begin where 16 or 32 bits can be read and written at once.
inline bool fields_are_straight(const uint8_t *fields, unsigned width) {
    return width == 2 ? multiples_of(2, fields) : width % 4 == 0 && multiples_of(4, fields);
}

// 256 threads: 8 warps. Whole fields: 16 KiB of x a block, 4 loads of 16 bytes per lane on their way; others half as
// much, by 4 bytes.
template <class Writing>
terse_codec_status launch_write_fields(uint8_t *fields, const float *x, size_t n, unsigned width, const scaled &s,
                                       const terse_codec_options *o, const Writing &w, uint64_t *bad, void *stream) {
    const draws d = {o->seed, o->step, o->index};
    const field_target to = {fields, n, width, fields_are_straight(fields, width)};
    const bool whole = multiples_of(16, x) && multiples_of(4, fields) && (width == 4 || width == 8 || width == 16);
    if (!whole)
        return launch(write_fields<Writing>, divided_up(n, FIELD_WARPS * FIELDS), FIELD_THREADS, stream, to, x, s, d, w,
                      bad);
    const auto kernel = width == 4   ? write_whole_fields<Writing, 4>
                        : width == 8 ? write_whole_fields<Writing, 8>
                                     : write_whole_fields<Writing, 16>;
    return launch(kernel, divided_up(n, FIELD_WARPS * WHOLE_FIELDS), FIELD_THREADS, stream, to, x, s, d, w, bad);
}

template <class Reading, unsigned WIDTH>
terse_codec_status launch_read_whole_fields(float *sum, const uint8_t *fields, size_t n, const scaled &s,
                                            const terse_codec_options *o, const Reading &r, const uint64_t *bad,
                                            void *stream) {
    const auto kernel = multiples_of(16, sum) && multiples_of(4, fields) ? read_whole_fields<Reading, WIDTH, true>
                                                                         : read_whole_fields<Reading, WIDTH, false>;
    return launch(kernel, divided_up(n, FIELD_WARPS * WHOLE_FIELDS), FIELD_THREADS, stream, sum, fields, n, s, r,
                  o->scale, bad);
}

template <class Reading>
terse_codec_status launch_read_fields(float *sum, const uint8_t *fields, size_t n, unsigned width, const scaled &s,
                                      const terse_codec_options *o, const Reading &r, const uint64_t *bad,
                                      void *stream) {
    if (width == 4) return launch_read_whole_fields<Reading, 4>(sum, fields, n, s, o, r, bad, stream);
    if (width == 8) return launch_read_whole_fields<Reading, 8>(sum, fields, n, s, o, r, bad, stream);
    if (width == 16) return launch_read_whole_fields<Reading, 16>(sum, fields, n, s, o, r, bad, stream);
    return launch(read_fields<Reading>, divided_up(n, FIELD_WARPS * FIELDS), FIELD_THREADS, stream, sum, fields, n,
                  width, fields_are_straight(fields, width), s, r, o->scale, bad);
}

// (min(field, most) - offset) unit, as terse_field_meaning has it.
struct linear_reading {
    unsigned most;
    double offset, reach, s;  // unit = reach scale / s
    __device__ double unit(float scale) const { return reach * (double)scale / s; }
    __device__ float value(unsigned field, double unit) const {
        return (float)(((double)(field < most ? field : most) - offset) * unit);
    }
};

#endif
