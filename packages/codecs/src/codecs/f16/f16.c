#include "f16.h"

enum { LARGEST = TERSE_F16_LARGEST, INFINITE = TERSE_F16_INFINITE };
#include "../../shared/half-floats/half_floats.h"

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

TERSE_HALF_TABLE(terse_f16_scalar, "f16", "scalar")
