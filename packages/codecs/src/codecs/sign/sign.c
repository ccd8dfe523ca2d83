#include "sign.h"

size_t terse_sign_wire_bytes(size_t n, const terse_codec_options *options) {
    (void)options;
    return n / 8 + (n % 8 != 0);
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end) {
    (void)n;
    const int zero_is_plus = options->zero == TERSE_ZERO_PLUS;
    const uint8_t *hold = options->hold;
    for (size_t i = begin; i < end; i += 8) {
        unsigned byte = 0;
        for (size_t bit = 0; bit < 8 && i + bit < end; bit++) {
            const float value = x[i + bit];
            if (value - value != 0.0f) return i + bit;  // NaN or infinite
            byte |= (unsigned)(zero_is_plus ? value >= 0.0f : value > 0.0f) << bit;
        }
        wire[i / 8] = (uint8_t)(hold ? byte & ~hold[i / 8] : byte);
    }
    return end;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end) {
    (void)n;
    const float scale = options->scale;
    const uint8_t *hold = options->hold;
    for (size_t i = begin; i < end; i++) {
        const int plus = wire[i / 8] >> (i % 8) & 1;
        const int held = hold && hold[i / 8] >> (i % 8) & 1;
        if (!held) sum[i] += plus ? scale : -scale;
    }
    return TERSE_CODEC_OK;
}

const terse_codec terse_sign_scalar = {
    .name = "sign",
    .implementation = "scalar",
    .takes = TERSE_SIGN_TAKES,
    .wire_bytes = terse_sign_wire_bytes,
    .encode = encode,
    .decode_add = decode_add,
};
