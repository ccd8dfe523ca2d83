#include "sign.h"

size_t terse_sign_wire_bytes(size_t n) { return n / 8 + (n % 8 != 0); }

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options) {
    const int zero_is_plus = options->zero == TERSE_ZERO_PLUS;
    const uint8_t *hold = options->hold;
    for (size_t b = 0; b < terse_sign_wire_bytes(n); b++) {
        unsigned byte = 0;
        for (size_t lane = 0; lane < 8 && 8 * b + lane < n; lane++) {
            const float value = x[8 * b + lane];
            if (value - value != 0.0f) return 8 * b + lane;  // NaN or infinite
            byte |= (unsigned)(zero_is_plus ? value >= 0.0f : value > 0.0f) << lane;
        }
        wire[b] = (uint8_t)(hold ? byte & ~hold[b] : byte);
    }
    return n;
}

static void decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options) {
    const float scale = options->scale;
    const uint8_t *hold = options->hold;
    for (size_t i = 0; i < n; i++) {
        const int plus = wire[i / 8] >> (i % 8) & 1;
        const int held = hold && hold[i / 8] >> (i % 8) & 1;
        if (!held) sum[i] += plus ? scale : -scale;
    }
}

const terse_codec terse_sign_scalar = {"sign", "scalar", terse_sign_wire_bytes, encode, decode_add};
