// fields.h on a GPU: x (n) <-> whole numbers of `width` bits side by side.
//
//   a warp's 256 elements = 4 groups of 64; lane j or 16 + j of it does elements j, j + 16, j + 32, j + 48 of a group, as Philox gives
//   words, so that floats are read 64 bytes side by side; their fields change places in shared memory, and lane l packs fields
//   8 l .. 8 l + 7 into `width` bytes. Decoding goes the other way.
//
// What a field is, is said by two small structs: a Writing (factor of a scale; field of a number; what it refuses; what zero is) and a
// Reading (unit of a scale; value of a field).
#ifndef TERSE_FIELDS_CUH
#define TERSE_FIELDS_CUH
#include "fields.h"
#include "random/random.cuh"
#include "regions.cuh"

constexpr unsigned FIELDS = 256, FIELD_THREADS = 256, FIELD_WARPS = FIELD_THREADS / WARP;

// Elements that share a scale, and where the scales are: on the wire, or (while encoding) in the workspace.
struct scaled {
    regions in;
    const uint8_t *scales;  // null: all are 1

    __device__ float of_region(size_t r) const { return scales ? scale_on_wire(scales, r) : 1.0f; }
};

// Eight fields of one lane, least significant bit first.
struct eight_fields { uint64_t low, high; };

__device__ inline void store_fields(uint8_t *to, const eight_fields &v, unsigned width, size_t left, bool straight) {
    if (straight && left >= width) {
        if (width == 2) *(uint16_t *)to = (uint16_t)v.low;
        else
            for (unsigned b = 0; b < width; b += 4) ((unsigned *)to)[b / 4] = (unsigned)((b < 8 ? v.low : v.high) >> 8 * (b % 8));
    } else {
        for (unsigned b = 0; b < width && b < left; b++) to[b] = (uint8_t)((b < 8 ? v.low : v.high) >> 8 * (b % 8));
    }
}

__device__ inline eight_fields load_fields(const uint8_t *from, unsigned width, size_t left, bool straight) {
    eight_fields v = {};
    if (straight && left >= width) {
        if (width == 2) v.low = *(const uint16_t *)from;
        else
            for (unsigned b = 0; b < width; b += 4) (b < 8 ? v.low : v.high) |= (uint64_t)((const unsigned *)from)[b / 4] << 8 * (b % 8);
    } else {
        for (unsigned b = 0; b < width && b < left; b++) (b < 8 ? v.low : v.high) |= (uint64_t)from[b] << 8 * (b % 8);
    }
    return v;
}

template <class Writing>
static __global__ void __launch_bounds__(FIELD_THREADS) write_fields(uint8_t *fields, const float *x, size_t n, unsigned width, bool straight, scaled s, draws d, Writing w, uint64_t *bad) {
    __shared__ uint64_t room[FIELD_WARPS][FIELDS / 8];
    const unsigned lane = lane_of_warp(), j = lane % 16;
    uint64_t *const packed = room[threadIdx.x / WARP];
    uint8_t *const staged = (uint8_t *)packed;
    const size_t bytes = divided_up(n * width, 8);
    for (size_t base = first_warp() * FIELDS; base < n; base += all_warps() * FIELDS) {
        float v[8];
#pragma unroll
        for (unsigned k = 0; k < 8; k++) {
            const size_t i = base + 64 * (2 * (k / 4) + lane / 16) + j + 16 * (k % 4);
            v[k] = i < n ? x[i] : 0.0f;
        }
        const size_t end = base + FIELDS < n ? base + FIELDS : n, first = s.in.of(base);
        const bool one_region = end <= s.in.begin(first + 1);
        float scale = s.of_region(first);
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
                    if (!one_region) scale = s.of_region(s.in.of(i)), factor = w.factor(scale);
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
        if (to < bytes) store_fields(fields + to, out, width, bytes - to, straight);
        __syncwarp();  // before the next unit overwrites what was read
    }
}

template <class Reading>
static __global__ void __launch_bounds__(FIELD_THREADS) read_fields(float *sum, const uint8_t *fields, size_t n, unsigned width, bool straight, scaled s, Reading reading, float by, const uint64_t *bad) {
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
        const eight_fields in = from < bytes ? load_fields(fields + from, width, bytes - from, straight) : eight_fields{};
        unsigned of[8];
#pragma unroll
        for (unsigned k = 0; k < 8; k++) of[k] = (unsigned)(width == 16 ? (k < 4 ? in.low : in.high) >> 16 * (k % 4) : in.low >> k * width) & mask;
        room[threadIdx.x / WARP][lane] = make_uint4(of[0] | of[1] << 16, of[2] | of[3] << 16, of[4] | of[5] << 16, of[6] | of[7] << 16);
        __syncwarp();
        const size_t end = base + FIELDS < n ? base + FIELDS : n, first = s.in.of(base);
        const bool one_region = end <= s.in.begin(first + 1);
        double unit = reading.unit(s.of_region(first));
#pragma unroll
        for (unsigned k = 0; k < 8; k++) {
            const size_t i = base + lane + WARP * k;
            if (i >= n) break;
            if (!one_region) unit = reading.unit(s.of_region(s.in.of(i)));
            sum[i] = v[k] + reading.value(staged[lane + WARP * k], unit) * by;
        }
        __syncwarp();
    }
}

// Whether 8 fields begin where 16 or 32 bits can be read and written at once.
inline bool fields_are_straight(const uint8_t *fields, unsigned width) { return width == 2 ? multiples_of(2, fields) : width % 4 == 0 && multiples_of(4, fields); }

// 256 threads: 8 warps, 8 KiB of x a block, 8 loads of 4 bytes a lane on their way.
template <class Writing>
terse_codec_status launch_write_fields(uint8_t *fields, const float *x, size_t n, unsigned width, const scaled &s, const terse_codec_options *o, const Writing &w, uint64_t *bad, void *stream) {
    const draws d = {o->seed, o->step, o->index};
    return launch(write_fields<Writing>, divided_up(n, FIELD_WARPS * FIELDS), FIELD_THREADS, stream, fields, x, n, width, fields_are_straight(fields, width), s, d, w, bad);
}

template <class Reading>
terse_codec_status launch_read_fields(float *sum, const uint8_t *fields, size_t n, unsigned width, const scaled &s, const terse_codec_options *o, const Reading &r, const uint64_t *bad, void *stream) {
    return launch(read_fields<Reading>, divided_up(n, FIELD_WARPS * FIELDS), FIELD_THREADS, stream, sum, fields, n, width, fields_are_straight(fields, width), s, r, o->scale, bad);
}

// (min(field, most) - offset) unit, as terse_field_meaning has it.
struct linear_reading {
    unsigned most;
    double offset, reach, s;  // unit = reach scale / s
    __device__ double unit(float scale) const { return reach * (double)scale / s; }
    __device__ float value(unsigned field, double unit) const { return (float)(((double)(field < most ? field : most) - offset) * unit); }
};

#endif
