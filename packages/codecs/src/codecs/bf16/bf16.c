#include "bf16.h"

enum { LARGEST = TERSE_BF16_LARGEST, INFINITE = TERSE_BF16_INFINITE };
#include "../../shared/half-floats/half_floats.h"

size_t terse_bf16_wire_bytes(size_t n, const terse_codec_options *options) {
    (void)options;
    return 2 * n;
}

// A tie goes up where the half is odd.
static uint16_t half_of(uint32_t bits) { return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16); }

static float value_of(uint16_t half) { return float_of((uint32_t)half << 16); }

const terse_codec terse_bf16_scalar = {
    .name = "bf16",
    .implementation = "scalar",
    .wire_bytes = terse_bf16_wire_bytes,
    .encode = encode,
    .is_good = is_good,
    .decode_add = decode_add,
};
