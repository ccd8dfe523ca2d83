#include "int8.h"

#include <math.h>

size_t terse_int8_wire_bytes(size_t n, const terse_codec_options *options) {
    return 4 * terse_scale_group_count(n, options) + n;
}

static size_t scale_of_group(const void *reductions, const float *x, size_t begin, size_t end,
                             const terse_codec_options *o, float *scale) {
    (void)o;
    *scale = ((const terse_reductions *)reductions)->largest(x + begin, end - begin);
    return *scale - *scale == 0.0f ? end : begin + terse_first_not_finite(x + begin, end - begin);
}

size_t terse_int8_prepare(const terse_reductions *reductions, uint8_t *wire, const float *x, size_t n,
                          const terse_codec_options *o) {
    return terse_scales_in_encode(o) ? n : terse_int8_scales(reductions, wire, x, n, o);
}

size_t terse_int8_prepare_measured(uint8_t *wire, const float *x, size_t n, const double *measures) {
    if (n == 0) return 0;
    const float scale = (float)terse_reductions_combine(measures, n, TERSE_LARGEST);
    terse_set_scale(wire, 0, scale);
    return scale - scale == 0.0f ? n : terse_first_not_finite(x, n);
}

size_t terse_int8_scales(const terse_reductions *reductions, uint8_t *scales, const float *x, size_t n,
                         const terse_codec_options *o) {
    return terse_compute_scales(scale_of_group, reductions, 1, scales, x, n, o);
}

size_t terse_int8_encode(const terse_reductions *reductions, terse_int8_writing *write, uint8_t *wire, const float *x,
                         size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    uint8_t *bytes = wire + 4 * terse_scale_group_count(n, o);
    for (size_t i = begin, r = begin < end ? terse_scale_group_of(begin, o) : 0; i < end; r++) {
        const size_t group_begin = terse_scale_group_begin(r, n, o), behind = terse_scale_group_begin(r + 1, n, o),
                     stop = behind < end ? behind : end;
        float scale;
        if (terse_scales_in_encode(o)) {
            const size_t accepted = scale_of_group(reductions, x, group_begin, behind, o, &scale);
            if (accepted < behind) return accepted;
            if (group_begin >= begin) terse_set_scale(wire, r, scale);
        } else {
            scale = terse_scale_at(wire, r);
        }
        write(bytes, x, i, stop, terse_int8_levels(scale));
        i = stop;
    }
    return end;
}

// -128, which no encoder writes, overflows fp32 if the scale is near the largest float.
int terse_int8_is_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    if (!terse_scales_are_good(wire, n, o, begin, end)) return 0;
    const terse_scale_group_range groups = terse_scale_groups_of(begin, end, n, o);
    const uint8_t *const bytes = wire + 4 * terse_scale_group_count(n, o);
    for (size_t r = groups.first; r < groups.end; r++) {
        if (isfinite((float)(-128.0 * terse_int8_step(terse_scale_at(wire, r))))) continue;
        const size_t from = terse_scale_group_begin(r, n, o), to = terse_scale_group_begin(r + 1, n, o);
        const size_t first = from > begin ? from : begin, last = to < end ? to : end;
        if (first < last && memchr(bytes + first, 0x80, last - first)) return 0;
    }
    return 1;
}

terse_codec_status terse_int8_decode_add(terse_int8_reading *read, float *sum, const uint8_t *wire, size_t n,
                                         const terse_codec_options *o, size_t begin, size_t end) {
    const size_t groups = terse_scale_group_count(n, o);
    for (size_t i = begin, r = begin < end ? terse_scale_group_of(begin, o) : 0; i < end; r++) {
        const size_t behind = terse_scale_group_begin(r + 1, n, o), stop = behind < end ? behind : end;
        read(sum, wire + 4 * groups, i, stop, terse_int8_step(terse_scale_at(wire, r)), o->scale);
        i = stop;
    }
    return TERSE_CODEC_OK;
}

void terse_int8_write(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels) {
    for (size_t i = begin; i < end; i++) bytes[i] = (uint8_t)lrint((double)x[i] * levels);
}

void terse_int8_read(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale) {
    for (size_t i = begin; i < end; i++) {
        const float value = (float)((double)(int8_t)bytes[i] * step);
        sum[i] += scale * value;
    }
}

TERSE_INT8(scalar, terse_int8_write, terse_int8_read)
