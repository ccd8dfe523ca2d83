#include "ternary.h"

size_t terse_ternary_wire_bytes(size_t n, const terse_codec_options *options) {
    (void)options;
    return 2 * terse_ternary_plane(n);
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end) {
    (void)options;
    uint8_t *plus = wire, *nonzero = wire + terse_ternary_plane(n);
    for (size_t i = begin; i < end; i += 8) {
        unsigned above = 0, apart = 0;
        for (size_t element = 0; element < 8 && i + element < end; element++) {
            const float value = x[i + element];
            if (value - value != 0.0f) return i + element;  // NaN or infinite
            above |= (unsigned)(value > 0.0f) << element;
            apart |= (unsigned)(value != 0.0f) << element;
        }
        plus[i / 8] = (uint8_t)above;
        nonzero[i / 8] = (uint8_t)apart;
    }
    return end;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end) {
    const uint8_t *plus = wire, *nonzero = wire + terse_ternary_plane(n);
    for (size_t i = begin; i < end; i++) {
        const int value = (nonzero[i / 8] >> (i % 8) & 1) * (2 * (plus[i / 8] >> (i % 8) & 1) - 1);
        sum[i] += options->scale * (float)value;
    }
    return TERSE_CODEC_OK;
}

const terse_codec terse_ternary_scalar = {
    .name = "ternary",
    .implementation = "scalar",
    .wire_bytes = terse_ternary_wire_bytes,
    .encode = encode,
    .decode_add = decode_add,
};
