// levels.h on a GPU, the part that l1, linf and qsgd share: partial reductions -> one scale per scale group, in the
// workspace and on the wire -> fields. Units that the ranks agreed on replace the scales in the workspace, and no scale
// is computed.
#ifndef TERSE_LEVELS_CUH
#define TERSE_LEVELS_CUH
#include "shared/fields/fields.cuh"
#include "levels.h"
#include "shared/reductions/reductions.cuh"

enum reduction { MEAN_MAGNITUDE, LARGEST_MAGNITUDE, NORM };

// A warp per scale group. The workspace has them because an unscaled wire does not.
template <reduction REDUCTION>
static __global__ void __launch_bounds__(256) level_scales(uint8_t *scales, uint8_t *wire, const void *partials,
                                                           const float *x, slots s, double reach, uint64_t *bad) {
    for (size_t r = first_warp(); r < s.in.count; r += all_warps()) {
        const size_t begin = s.in.begin(r), end = s.in.begin(r + 1);
        double reduced = 0;
        if (REDUCTION == LARGEST_MAGNITUDE) reduced = largest_of_group((const unsigned *)partials, s, r);
        else reduced = sum_of_group((const double *)partials, s, r);
        if (REDUCTION == MEAN_MAGNITUDE) reduced = reduced / (double)(end - begin);
        if (REDUCTION == NORM) reduced = sqrt(reduced);
        float scale = begin < end ? (float)reduced : 0.0f;
        if (!((double)scale >= 0 && (double)scale * reach <= (double)0x1.fffffep127f)) {
            refuse_group(bad, x, begin, end);
            scale = 0.0f;  // the wire is undefined then, but the kernel that writes it needs a number
        }
        if (lane_of_warp() == 0) {
            put_scale(scales, r, scale);
            if (wire) put_scale(wire, r, scale);
        }
    }
}

constexpr size_t chunk_of(reduction kind) {
    return kind == LARGEST_MAGNITUDE ? LARGEST_CHUNK : (size_t)TERSE_REDUCTION_CHUNK;
}

// ends of segments | scales or units | partial reductions
template <reduction REDUCTION>
size_t levels_workspace_bytes(size_t n, const terse_codec_options *o) {
    return bytes_of_ends(o) + whole_words(4 * terse_scale_group_count(n, o)) +
           8 * slot_count(n, o, chunk_of(REDUCTION));
}
inline uint8_t *scales_in(void *workspace, const terse_codec_options *o) {
    return (uint8_t *)workspace + bytes_of_ends(o);
}

// As put_scale_groups, the copy reads them before it returns.
inline terse_codec_status put_units(uint8_t *scales, const terse_codec_options *o, void *stream) {
    return terse_cuda_status(
        cudaMemcpyAsync(scales, o->units, o->unit_count * sizeof(float), cudaMemcpyHostToDevice, (cudaStream_t)stream));
}

// A Writing multiplies x with `levels` / scale: the scale is that many levels, a unit is one.
inline double levels_of_scale(const terse_codec_options *o, double levels) { return o->units ? 1 : levels; }
// A scale is not finite if an element is not; with units no scale is computed, so the kernel looks at the elements.
__device__ inline bool refused_by_units(bool units, float x) { return units && magnitude_bits(x) >= INFINITE; }

template <reduction REDUCTION, class Writing>
terse_codec_status encode_levels(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, double reach,
                                 const Writing &w, void *workspace, uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const slots s = slots_of(in, chunk_of(REDUCTION));
    uint8_t *const scales = scales_in(workspace, o), *const fields = o->unscaled ? wire : wire + 4 * in.count;
    void *const partials = scales + whole_words(4 * in.count);
    if (status == TERSE_CODEC_OK && o->units) {
        status = put_units(scales, o, stream);
    } else if (status == TERSE_CODEC_OK) {
        if (REDUCTION == LARGEST_MAGNITUDE) status = largest_all((unsigned *)partials, x, s, stream);
        if (REDUCTION == MEAN_MAGNITUDE)
            status = sum_all<MAGNITUDES>((double *)partials, x, nullptr, nullptr, s, stream);
        if (REDUCTION == NORM) status = sum_all<SQUARES>((double *)partials, x, nullptr, nullptr, s, stream);
    }
    if (status == TERSE_CODEC_OK && !o->units)
        status = launch(level_scales<REDUCTION>, divided_up(in.count, 8), 256, stream, scales,
                        o->unscaled ? nullptr : wire, partials, x, s, reach, bad);
    if (status == TERSE_CODEC_OK)
        status = launch_write_fields(fields, x, n, terse_field_width(o), {in, scales}, o, w, bad, stream);
    return status;
}

// Levels are powers of two: q = +-k stands for +-scale 2^(k - s).
struct logarithmic_reading {
    int s;
    __device__ double unit(float scale) const { return scale; }
    __device__ float value(unsigned field, double scale) const {
        const int q = ((int)field < 2 * s ? (int)field : 2 * s) - s, k = q < 0 ? -q : q;
        const double magnitude = q ? ldexp(scale, k - s) : 0.0;
        return (float)(q < 0 ? -magnitude : magnitude);
    }
};

inline terse_codec_status decode_levels(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                        double reach, void *workspace, uint64_t *bad, void *stream) {
    const unsigned s = terse_levels_a_side(o), width = terse_field_width(o);
    const linear_reading summed = {UINT16_MAX, (double)terse_field_ranks(o) * s, 1.0, 1.0};
    if (o->unscaled && !o->units)
        return launch_read_fields(sum, wire, n, width, {{n, 1, n, nullptr}, nullptr}, o, summed, bad, stream);
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    if (o->units) {
        uint8_t *const units = scales_in(workspace, o);
        if (status == TERSE_CODEC_OK) status = put_units(units, o, stream);
        return status != TERSE_CODEC_OK ? status
                                        : launch_read_fields(sum, wire, n, width, {in, units}, o, summed, bad, stream);
    }
    const uint8_t *const fields = wire + 4 * in.count;
    if (status == TERSE_CODEC_OK)
        status = launch(check_scales, divided_up(in.count, 256), 256, stream, wire, in.count, reach, bad);
    if (status != TERSE_CODEC_OK) return status;
    if (o->levels == TERSE_LEVELS_LOGARITHMIC)
        return launch_read_fields(sum, fields, n, width, {in, wire}, o, logarithmic_reading{(int)s}, bad, stream);
    return launch_read_fields(sum, fields, n, width, {in, wire}, o, linear_reading{2 * s, (double)s, reach, (double)s},
                              bad, stream);
}

#endif
