#include "scaling.h"

static size_t scales_of_group(const void *scaling, const float *x, size_t begin, size_t end,
                              const terse_codec_options *o, float *scales) {
    return terse_scales_of_range(scaling, x, begin, end, o, scales);
}

size_t terse_scaling_prepare(const terse_scaling *scaling, uint8_t *wire, const float *x, size_t n,
                             const terse_codec_options *o) {
    return terse_encode_scales(o) ? n : terse_scaling_scales(scaling, wire, x, n, o);
}

size_t terse_scaling_prepare_measured(const terse_scaling *scaling, uint8_t *wire, const float *x, size_t n,
                                      const terse_codec_options *o, const double *measures) {
    if (n == 0) return 0;
    float scales[TERSE_MOST_SCALES];
    const double measure = terse_reductions_combine(measures, n, scaling->combination);
    const size_t accepted = scaling->scales_from(scaling, measure, x, 0, n, o, scales);
    memcpy(wire, scales, 4 * terse_scales_each(scaling, o));
    return accepted;
}

size_t terse_scaling_scales(const terse_scaling *scaling, uint8_t *scales, const float *x, size_t n,
                            const terse_codec_options *o) {
    return terse_compute_scales(scales_of_group, scaling, terse_scales_each(scaling, o), scales, x, n, o);
}
