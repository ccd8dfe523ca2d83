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

size_t terse_levels_scale(const terse_scaling *scaling, double measure, const float *x, size_t begin, size_t end,
                          const terse_codec_options *o, float *scale) {
    (void)o;
    const terse_levels_codec *codec = (const terse_levels_codec *)scaling;  // its first member
    *scale = begin < end ? (float)codec->scale_of(measure, end - begin) : 0.0f;
    if (terse_levels_can_be_a_scale(*scale, codec->reach)) return end;
    const size_t bad = begin + terse_first_not_finite(x + begin, end - begin);
    if (bad < end) return bad;
    size_t largest = begin;
    for (size_t i = begin; i < end; i++)
        if (fabsf(x[i]) > fabsf(x[largest])) largest = i;
    return largest;
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
    const size_t accepted = terse_scales_of_range(&codec->scaling, x, 0, n, o, &w.scale);
    if (accepted < n) return accepted;
    if (!o->unscaled) terse_set_scale(wire, 0, w.scale);
    terse_parallel(n, TERSE_WALK_GROUP, write_part, &w);
    return n;
}

// Floats are checked and written while they are in the cache. Returns part->to, or the first that is not finite.
static size_t write_by_unit(const writing *w, const terse_group_part *part) {
    for (size_t i = part->from, to; i < part->to; i = to) {
        const size_t near = (i / TERSE_REDUCTION_CHUNK + 1) * TERSE_REDUCTION_CHUNK;
        to = near < part->to ? near : part->to;
        const size_t accepted = i + terse_first_not_finite(w->x + i, to - i);
        if (accepted < to) return accepted;
        write_fields(w, i, to);
    }
    return part->to;
}

size_t terse_levels_encode(const terse_levels_codec *codec, uint8_t *wire, const float *x, size_t n,
                           const terse_codec_options *o, size_t begin, size_t end) {
    writing w = {codec, terse_levels_fields(wire, n, o), x, o, 0};
    TERSE_EACH_GROUP_PART(part, begin, end, n, o) {
        if (o->units) {
            w.scale = o->units[part.r];
            const size_t accepted = write_by_unit(&w, &part);
            if (accepted < part.to) return accepted;
            continue;
        }
        const size_t accepted = terse_scales_of_part(&codec->scaling, wire, x, &part, begin, o, &w.scale);
        if (accepted < part.end) return accepted;
        write_fields(&w, part.from, part.to);
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
    TERSE_EACH_GROUP_PART(part, begin, end, n, o) {
        const double scale = o->units ? o->units[part.r] : terse_scale_at(wire, part.r);
        const terse_field_meaning own = {width, 2 * s, s, codec->reach * scale / s},
                                  agreed = {width, UINT16_MAX, none, scale};
        const terse_field_meaning meaning = o->units ? agreed : own;
        if (o->levels == TERSE_LEVELS_LOGARITHMIC)
            add_logarithmic(sum, fields, width, (int)s, scale, o->scale, part.from, part.to);
        else codec->add(sum, fields, n, &meaning, o->scale, part.from, part.to);
    }
    return TERSE_CODEC_OK;
}
