#include "f16.h"

#include <string.h>

size_t terse_f16_wire_bytes(size_t n, const terse_codec_options *options) {
    (void)options;
    return 2 * n;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

// Exponents count from 15 in f16 and from 127 in fp32: 112 apart.
enum { SMALLEST_NORMAL = 113 << 23 };  // 2^-14 in fp32

static uint16_t half_of(uint32_t bits) {
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    // Steps of 2^-24 are those of the floats from 0.5 to 1: the addition rounds to them.
    if (magnitude < SMALLEST_NORMAL) return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
    const uint32_t shifted = magnitude - (112u << 23);
    return (uint16_t)(sign | (shifted + 0xfffu + (shifted >> 13 & 1)) >> 13);  // a tie goes up where the half is odd
}

static float value_of(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    if (magnitude < 0x400) return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
    return float_of(sign | ((magnitude << 13) + (112u << 23)));
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)n, (void)options;
    for (size_t i = begin; i < end; i++) {
        const uint32_t bits = bits_of(x[i]);
        if ((bits & 0x7fffffffu) > TERSE_F16_LARGEST) return i;
        const uint16_t half = half_of(bits);
        memcpy(wire + 2 * i, &half, 2);
    }
    return end;
}

static int is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)n, (void)options;
    uint16_t half;
    for (size_t i = begin; i < end; i++) {
        memcpy(&half, wire + 2 * i, 2);
        if ((half & TERSE_F16_INFINITE) == TERSE_F16_INFINITE) return 0;
    }
    return 1;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)n;
    uint16_t half;
    for (size_t i = begin; i < end; i++) {
        memcpy(&half, wire + 2 * i, 2);
        sum[i] += options->scale * value_of(half);
    }
    return TERSE_CODEC_OK;
}

const terse_codec terse_f16_scalar = {
    .name = "f16", .implementation = "scalar",
    .wire_bytes = terse_f16_wire_bytes, .encode = encode, .is_good = is_good, .decode_add = decode_add,
};
