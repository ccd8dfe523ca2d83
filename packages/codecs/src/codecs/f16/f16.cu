// f16 on a GPU: IEEE 754 binary16, rounded to nearest even. x (n) <-> wire (2 n bytes).
#include "f16.cuh"
#include "shared/half-floats/half_floats.cuh"

extern const terse_codec_cuda terse_f16_cuda;
const terse_codec_cuda terse_f16_cuda = {&terse_f16_scalar, nullptr, launch_encode_halves<f16_half>,
                                         launch_add_halves<f16_half>};
