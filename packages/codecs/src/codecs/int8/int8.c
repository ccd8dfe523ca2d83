#include "int8.h"

#include <math.h>

size_t terse_int8_wire_bytes(size_t n, const terse_codec_options *options) {
    return 4 * terse_scale_group_count(n, options) + n;
}

size_t terse_int8_scale(const terse_scaling *scaling, double largest, const float *x, size_t begin, size_t end,
                        const terse_codec_options *o, float *scale) {
    (void)scaling, (void)o;
    *scale = (float)largest;
    return *scale - *scale == 0.0f ? end : begin + terse_first_not_finite(x + begin, end - begin);
}

size_t terse_int8_encode(const terse_int8_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                         const terse_codec_options *o, size_t begin, size_t end) {
    uint8_t *bytes = wire + 4 * terse_scale_group_count(n, o);
    TERSE_EACH_GROUP_PART(part, begin, end, n, o) {
        float scale;
        const size_t accepted = terse_scales_of_part(&kernel->scaling, wire, x, &part, begin, o, &scale);
        if (accepted < part.end) return accepted;
        kernel->write(bytes, x, part.from, part.to, terse_int8_levels(scale));
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

terse_codec_status terse_int8_decode_add(const terse_int8_kernel *kernel, float *sum, const uint8_t *wire, size_t n,
                                         const terse_codec_options *o, size_t begin, size_t end) {
    const uint8_t *const bytes = wire + 4 * terse_scale_group_count(n, o);
    TERSE_EACH_GROUP_PART(part, begin, end, n, o)
    kernel->read(sum, bytes, part.from, part.to, terse_int8_step(terse_scale_at(wire, part.r)), o->scale);
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
