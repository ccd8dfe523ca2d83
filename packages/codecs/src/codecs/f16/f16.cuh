// One half on a GPU, from the bits of a float and back.
#ifndef TERSE_F16_CUH
#define TERSE_F16_CUH
#include "f16.h"
#include "launch.cuh"

// Exponents count from 15 in f16 and from 127 in fp32: 112 apart.
struct f16_half {
    static constexpr unsigned LARGEST = TERSE_F16_LARGEST, INFINITE_BITS = TERSE_F16_INFINITE,
                              SMALLEST_NORMAL = 113u << 23;

    static __device__ unsigned of(unsigned bits) {
        const unsigned sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
        // Steps of 2^-24 are those of the floats from 0.5 to 1: the addition rounds to them.
        if (magnitude < SMALLEST_NORMAL)
            return sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - __float_as_uint(0.5f));
        const unsigned shifted = magnitude - (112u << 23);
        return sign | ((shifted + 0xfffu + (shifted >> 13 & 1)) >> 13 & 0x7fffu);  // a tie goes up where the half is
                                                                                   // odd
    }
    static __device__ float value(unsigned half) {
        const unsigned sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
        if (magnitude < 0x400) return __uint_as_float(sign | __float_as_uint((float)magnitude * 0x1p-24f));
        return __uint_as_float(sign | ((magnitude << 13) + (112u << 23)));
    }
};

#endif
