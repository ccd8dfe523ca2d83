#include "count.h"

size_t terse_count_wire_bytes(size_t n, const terse_codec_options *o) {
    return terse_field_bytes(n, terse_field_width(o));
}

terse_codec_status terse_count_check(size_t n, const terse_codec_options *o) {
    (void)n;
    if (o->bits > 8) return TERSE_CODEC_BAD_BITS;
    const unsigned width = terse_field_width(o);
    return terse_check_fields(o, width == 2 || width == 4 || width == 8 || width == 16);
}

size_t terse_count_encode_scalar(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,
                                 size_t end) {
    (void)n;
    const unsigned width = terse_field_width(o);
    const int zero_is_plus = o->zero == TERSE_ZERO_PLUS;
    const float s = (float)((1 << (terse_field_bits(o) - 1)) - 1);
    for (size_t i = begin; i < end; i++) {
        const float value = x[i];
        if (s == 0) {
            if (value - value != 0.0f) return i;  // NaN or infinite
            terse_set_field(wire, i, width, zero_is_plus ? value >= 0.0f : value > 0.0f);
        } else {
            if (!(value >= -s && value <= s) || (float)(int)value != value) return i;
            terse_set_field(wire, i, width, (unsigned)(int)(value + s));
        }
    }
    return end;
}

terse_field_meaning terse_count_meaning(const terse_codec_options *o) {
    const unsigned bits = terse_field_bits(o), width = terse_field_width(o);
    const double ranks = terse_field_ranks(o);
    if (bits == 1) return (terse_field_meaning){width, UINT16_MAX, ranks / 2, 2.0};  // (c - ranks / 2) 2, exact
    return (terse_field_meaning){width, UINT16_MAX, ranks * ((1 << (bits - 1)) - 1), 1.0};
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     size_t begin, size_t end) {
    const terse_field_meaning meaning = terse_count_meaning(o);
    terse_fields_add_scalar(sum, wire, n, &meaning, o->scale, begin, end);
    return TERSE_CODEC_OK;
}

const terse_codec terse_count_scalar = {
    .name = "count",
    .implementation = "scalar",
    .takes = TERSE_COUNT_TAKES,
    .check = terse_count_check,
    .wire_bytes = terse_count_wire_bytes,
    .encode = terse_count_encode_scalar,
    .decode_add = decode_add,
};
