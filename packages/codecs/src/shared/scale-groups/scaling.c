#include "scaling.h"

static size_t each(const terse_scaling *scaling, const terse_codec_options *o) {
    return scaling->is_table ? (size_t)1 << o->bits : 1;
}

static size_t scales_of_group(const void *scaling, const float *x, size_t begin, size_t end,
                              const terse_codec_options *o, float *scales) {
    return terse_scales_of_range(scaling, x, begin, end, o, scales);
}

static int are_in_encode(const terse_codec_options *o) { return o->unscaled || terse_scales_in_encode(o); }

size_t terse_scaling_prepare(const terse_scaling *scaling, uint8_t *wire, const float *x, size_t n,
                             const terse_codec_options *o) {
    return are_in_encode(o) ? n : terse_scaling_scales(scaling, wire, x, n, o);
}

size_t terse_scaling_prepare_measured(const terse_scaling *scaling, uint8_t *wire, const float *x, size_t n,
                                      const terse_codec_options *o, const double *measures) {
    if (n == 0) return 0;
    float scales[TERSE_MOST_SCALES];
    const double measure = terse_reductions_combine(measures, n, scaling->combination);
    const size_t accepted = scaling->scales_from(scaling, measure, x, 0, n, o, scales);
    memcpy(wire, scales, 4 * each(scaling, o));
    return accepted;
}

size_t terse_scaling_scales(const terse_scaling *scaling, uint8_t *scales, const float *x, size_t n,
                            const terse_codec_options *o) {
    return terse_compute_scales(scales_of_group, scaling, each(scaling, o), scales, x, n, o);
}

size_t terse_scales_of_part(const terse_scaling *scaling, uint8_t *wire, const float *x, const terse_group_part *part,
                            size_t range, const terse_codec_options *o, float *scales) {
    const size_t bytes = 4 * each(scaling, o);
    uint8_t *const at = wire + part->r * bytes;
    if (!are_in_encode(o)) {
        memcpy(scales, at, bytes);
        return part->end;
    }
    const size_t accepted = terse_scales_of_range(scaling, x, part->begin, part->end, o, scales);
    // Whoever encodes the beginning of a group writes its scales.
    if (accepted == part->end && !o->unscaled && part->begin >= range) memcpy(at, scales, bytes);
    return accepted;
}
