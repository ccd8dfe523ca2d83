#include "terngrad.h"

#include <math.h>

#include "../../shared/random/random.h"

size_t terse_terngrad_wire_bytes(size_t n, const terse_codec_options *options) {
    return 4 * terse_scale_group_count(n, options) + terse_terngrad_quarter(n);
}

terse_codec_status terse_terngrad_check(size_t n, const terse_codec_options *options) {
    (void)n;
    return options->clip >= 0.0f && isfinite(options->clip) ? TERSE_CODEC_OK : TERSE_CODEC_BAD_CHOICE;
}

static size_t scale_of_group(const void *reductions, const float *x, size_t begin, size_t end,
                             const terse_codec_options *o, float *scale) {
    *scale = ((const terse_reductions *)reductions)->largest(x + begin, end - begin);
    if (*scale - *scale != 0.0f) return begin + terse_first_not_finite(x + begin, end - begin);
    if (o->clip > 0.0f) {
        const double bound = (double)o->clip * terse_deviation(x + begin, end - begin);
        if (bound > 0.0 && bound < (double)*scale) *scale = (float)bound;
    }
    return end;
}

size_t terse_terngrad_prepare(const terse_reductions *reductions, uint8_t *wire, const float *x, size_t n,
                              const terse_codec_options *o) {
    return terse_compute_scales(scale_of_group, reductions, 1, wire, x, n, o);
}

static unsigned code_of(const float *x, size_t i, const uint8_t *wire, const terse_codec_options *o) {
    const double odds = terse_terngrad_odds(terse_scale_at(wire, terse_scale_group_of(i, o)));
    const double draw = terse_random_word(o->seed, o->step, o->index + i) >> 1;
    if (draw >= fabs((double)x[i]) * odds) return 1;
    return x[i] < 0.0f ? 0 : 2;
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    uint8_t *bytes = wire + 4 * terse_scale_group_count(n, o);
    const size_t quarter = terse_terngrad_quarter(n);
    for (size_t j = begin / 4; j < terse_terngrad_byte(end, n); j++) {
        unsigned byte = 0;
        for (size_t k = 0; k < 4 && k * quarter + j < n; k++) byte |= code_of(x, k * quarter + j, wire, o) << 2 * k;
        bytes[j] = (uint8_t)byte;
    }
    return end;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     size_t begin, size_t end) {
    const size_t groups = terse_scale_group_count(n, o), quarter = terse_terngrad_quarter(n);
    if (!terse_scales_are_good(wire, n, o, 0, n)) return TERSE_CODEC_BAD_WIRE;
    for (size_t j = begin / 4; j < terse_terngrad_byte(end, n); j++)
        for (size_t k = 0; k < 4 && k * quarter + j < n; k++) {
            const size_t i = k * quarter + j;
            const terse_terngrad_table value = terse_terngrad_values(terse_scale_at(wire, terse_scale_group_of(i, o)),
                                                                     o->scale);
            sum[i] += value.of[wire[4 * groups + j] >> 2 * k & 3];
        }
    return TERSE_CODEC_OK;
}

TERSE_TERNGRAD(scalar)
