#include "levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "terse/parallel.h"

size_t terse_levels_wire_bytes(size_t n, const terse_codec_options *o) {
    return (o->unscaled ? 0 : 4 * terse_scale_group_count(n, o)) + terse_field_bytes(n, terse_field_width(o));
}

terse_codec_status terse_levels_check(size_t n, const terse_codec_options *o) {
    if (o->bits < 2 || o->bits > 8) return TERSE_CODEC_BAD_BITS;
    if (o->side > (1u << (o->bits - 1)) - 1) return TERSE_CODEC_BAD_CHOICE;
    if (o->levels > TERSE_LEVELS_LOGARITHMIC || o->unscaled > 1) return TERSE_CODEC_BAD_CHOICE;
    if (o->unscaled && o->levels == TERSE_LEVELS_LOGARITHMIC)
        return TERSE_CODEC_BAD_CHOICE;  // the sum of such levels has no meaning
    if (!o->unscaled && terse_field_ranks(o) > 1) return TERSE_CODEC_BAD_CHOICE;  // every rank has its own scale
    const unsigned width = terse_field_width(o);
    const terse_codec_status status = terse_check_fields(o,
                                                         width == o->bits || width == 4 || width == 8 || width == 16);
    if (status != TERSE_CODEC_OK || !o->units) return status;
    if (!o->unscaled) return TERSE_CODEC_BAD_CHOICE;  // the scales on the wire give the value of a level
    if ((uintptr_t)o->units % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    if (o->unit_count != terse_scale_group_count(n, o)) return TERSE_CODEC_BAD_SCALE_GROUPS;
    const double most = (1u << width) - 1;  // any bytes may arrive, and none may decode to infinity
    for (size_t r = 0; r < o->unit_count; r++)
        if (!(o->units[r] >= 0 && o->units[r] * most <= FLT_MAX)) return TERSE_CODEC_BAD_SCALE;
    return TERSE_CODEC_OK;
}

// Returns end, or the index of the element because of which this cannot be the scale.
static size_t accepted_with(const terse_levels_codec *codec, float scale, const float *x, size_t begin, size_t end) {
    if (terse_levels_can_be_a_scale(scale, codec->reach)) return end;
    const size_t bad = begin + terse_first_not_finite(x + begin, end - begin);
    if (bad < end) return bad;
    size_t largest = begin;
    for (size_t i = begin; i < end; i++)
        if (fabsf(x[i]) > fabsf(x[largest])) largest = i;
    return largest;
}

static size_t scale_of_group(const void *by, const float *x, size_t begin, size_t end, const terse_codec_options *o,
                             float *scale) {
    (void)o;
    const terse_levels_codec *codec = by;
    *scale = begin < end ? (float)codec->scale_of(codec->measure(x + begin, end - begin), end - begin) : 0.0f;
    return accepted_with(codec, *scale, x, begin, end);
}

size_t terse_levels_prepare(const terse_levels_codec *codec, uint8_t *wire, const float *x, size_t n,
                            const terse_codec_options *o) {
    return terse_levels_scale_in_encode(o) ? n : terse_levels_scales(codec, wire, x, n, o);
}

size_t terse_levels_prepare_measured(const terse_levels_codec *codec, uint8_t *wire, const float *x, size_t n,
                                     const double *measures) {
    if (n == 0) return 0;
    const float scale = (float)codec->scale_of(terse_reductions_combine(measures, n, codec->combination), n);
    terse_set_scale(wire, 0, scale);
    return accepted_with(codec, scale, x, 0, n);
}

size_t terse_levels_scales(const terse_levels_codec *codec, uint8_t *scales, const float *x, size_t n,
                           const terse_codec_options *o) {
    return terse_compute_scales(scale_of_group, codec, 1, scales, x, n, o);
}

typedef struct writing {
    const terse_levels_codec *codec;
    uint8_t *fields;
    const float *x;
    const terse_codec_options *options;
    float scale;
} writing;

static void write_fields(const writing *w, size_t from, size_t to) {
    if (w->scale > 0) w->codec->quantise(w->fields, w->x, w->options, w->scale, from, to);
    else
        for (size_t i = from; i < to; i++)
            terse_set_field(w->fields, i, terse_field_width(w->options), terse_levels_a_side(w->options));
}

static void write_part(void *context, size_t begin, size_t end) { write_fields(context, begin, end); }

size_t terse_levels_encode_at_once(const terse_levels_codec *codec, uint8_t *wire, const float *x, size_t n,
                                   const terse_codec_options *o) {
    if (codec->encode_in_one_pass && codec->encode_in_one_pass(wire, x, n, o)) return n;
    writing w = {codec, terse_levels_fields(wire, n, o), x, o, 0};
    const size_t accepted = scale_of_group(codec, x, 0, n, o, &w.scale);
    if (accepted < n) return accepted;
    if (!o->unscaled) terse_set_scale(wire, 0, w.scale);
    terse_parallel(n, TERSE_WALK_GROUP, write_part, &w);
    return n;
}

size_t terse_levels_encode(const terse_levels_codec *codec, uint8_t *wire, const float *x, size_t n,
                           const terse_codec_options *o, size_t begin, size_t end) {
    uint8_t *fields = terse_levels_fields(wire, n, o);
    for (size_t i = begin, r = begin < end ? terse_scale_group_of(begin, o) : 0; i < end;) {
        const size_t group_begin = terse_scale_group_begin(r, n, o), group_end = terse_scale_group_begin(r + 1, n, o);
        size_t to = group_end < end ? group_end : end;
        float scale;
        if (o->units) {
            const size_t near = (i / TERSE_REDUCTION_CHUNK + 1) * TERSE_REDUCTION_CHUNK;  // checked and written while
                                                                                          // it is in the cache
            if (near < to) to = near;
            const size_t accepted = i + terse_first_not_finite(x + i, to - i);
            if (accepted < to) return accepted;
            scale = o->units[r];
        } else if (terse_levels_scale_in_encode(o)) {
            const size_t accepted = scale_of_group(codec, x, group_begin, group_end, o, &scale);
            if (accepted < group_end) return accepted;
            if (!o->unscaled && group_begin >= begin) terse_set_scale(wire, r, scale);
        } else {
            scale = terse_scale_at(wire, r);
        }
        write_fields(&(writing){codec, fields, x, o, scale}, i, to);
        i = to;
        if (i == group_end) r++;
    }
    return end;
}

int terse_levels_scales_are_good(double reach, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                 size_t begin, size_t end) {
    if (o->unscaled) return 1;
    const terse_scale_group_range groups = terse_scale_groups_of(begin, end, n, o);
    for (size_t r = groups.first; r < groups.end; r++)
        if (!terse_levels_can_be_a_scale(terse_scale_at(wire, r), reach)) return 0;
    return 1;
}

static double power_of_two(int exponent) {
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

// Levels are powers of two: q = +-k stands for +-scale 2^(k - s).
static void add_logarithmic(float *sum, const uint8_t *fields, unsigned width, int s, double scale, float by,
                            size_t from, size_t to) {
    float values[255];
    for (int q = -s; q <= s; q++) {
        const double magnitude = q ? scale * power_of_two(abs(q) - s) : 0.0;
        values[q + s] = (float)(q < 0 ? -magnitude : magnitude) * by;
    }
    for (size_t i = from; i < to; i++) {
        const int field = (int)terse_field(fields, i, width);
        sum[i] += values[field < 2 * s ? field : 2 * s];
    }
}

terse_codec_status terse_levels_decode_add(const terse_levels_codec *codec, float *sum, const uint8_t *wire, size_t n,
                                           const terse_codec_options *o, size_t begin, size_t end) {
    const unsigned s = terse_levels_a_side(o), width = terse_field_width(o);
    const uint8_t *fields = terse_levels_fields((uint8_t *)wire, n, o);
    const double none = (double)terse_field_ranks(o) * s;
    if (o->unscaled && !o->units) {
        const terse_field_meaning meaning = {width, UINT16_MAX, none, 1.0};
        codec->add(sum, fields, n, &meaning, o->scale, begin, end);
        return TERSE_CODEC_OK;
    }
    for (size_t i = begin, r = begin < end ? terse_scale_group_of(begin, o) : 0; i < end; r++) {
        const size_t group_end = terse_scale_group_begin(r + 1, n, o), to = group_end < end ? group_end : end;
        const double scale = o->units ? o->units[r] : terse_scale_at(wire, r);
        const terse_field_meaning own = {width, 2 * s, s, codec->reach * scale / s},
                                  agreed = {width, UINT16_MAX, none, scale};
        const terse_field_meaning meaning = o->units ? agreed : own;
        if (o->levels == TERSE_LEVELS_LOGARITHMIC) add_logarithmic(sum, fields, width, (int)s, scale, o->scale, i, to);
        else codec->add(sum, fields, n, &meaning, o->scale, i, to);
        i = to;
    }
    return TERSE_CODEC_OK;
}
