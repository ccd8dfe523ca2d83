// bf16 on a GPU: the upper half of an fp32, rounded to nearest even. x (n) <-> wire (2 n bytes).
#include "bf16.h"
#include "shared/half-floats/half_floats.cuh"

struct bf16_half {
    static constexpr unsigned LARGEST = TERSE_BF16_LARGEST, INFINITE_BITS = TERSE_BF16_INFINITE;
    static __device__ unsigned of(unsigned bits) {
        return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    }  // a tie goes up where the half is odd
    static __device__ float value(unsigned half) { return __uint_as_float(half << 16); }
};

extern const terse_codec_cuda terse_bf16_cuda;
const terse_codec_cuda terse_bf16_cuda = {&terse_bf16_scalar, nullptr, launch_encode_halves<bf16_half>,
                                          launch_add_halves<bf16_half>};
