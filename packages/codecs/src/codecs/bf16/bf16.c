#include "bf16.h"

#include <string.h>

size_t terse_bf16_wire_bytes(size_t n, const terse_codec_options *options) {
    (void)options;
    return 2 * n;
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)n, (void)options;
    for (size_t i = begin; i < end; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        if ((bits & 0x7fffffffu) > TERSE_BF16_LARGEST) return i;
        const uint16_t half = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);  // a tie goes up where the half is odd
        memcpy(wire + 2 * i, &half, 2);
    }
    return end;
}

static int is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)n, (void)options;
    uint16_t half;
    for (size_t i = begin; i < end; i++) {
        memcpy(&half, wire + 2 * i, 2);
        if ((half & TERSE_BF16_INFINITE) == TERSE_BF16_INFINITE) return 0;
    }
    return 1;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)n;
    uint16_t half;
    for (size_t i = begin; i < end; i++) {
        memcpy(&half, wire + 2 * i, 2);
        const uint32_t bits = (uint32_t)half << 16;
        float value;
        memcpy(&value, &bits, 4);
        sum[i] += options->scale * value;
    }
    return TERSE_CODEC_OK;
}

const terse_codec terse_bf16_scalar = {
    .name = "bf16", .implementation = "scalar",
    .wire_bytes = terse_bf16_wire_bytes, .encode = encode, .is_good = is_good, .decode_add = decode_add,
};
