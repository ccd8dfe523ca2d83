#include "bf16.h"

enum { LARGEST = TERSE_BF16_LARGEST, INFINITE = TERSE_BF16_INFINITE };
#include "../../shared/half-floats/half_floats.h"

// A tie goes up where the half is odd.
static uint16_t half_of(uint32_t bits) { return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16); }

static float value_of(uint16_t half) { return float_of((uint32_t)half << 16); }

TERSE_HALF_TABLE(terse_bf16_scalar, "bf16", "scalar")
