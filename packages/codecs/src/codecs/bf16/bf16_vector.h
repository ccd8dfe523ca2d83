// bf16 in the words of terse/vector.h, which a file includes before this one.
#include "bf16.h"

static inline __attribute__((always_inline)) void store_halves(uint8_t *to, vec x) {
    typedef uint32_t bits __attribute__((vector_size(4 * LANES)));
    STORE_UINT16(to, ((bits)x + 0x7fff + ((bits)x >> 16 & 1)) >> 16);  // a tie goes up where the half is odd
}

static inline __attribute__((always_inline)) vec load_halves(const uint8_t *from) {
    return (vec)(LOAD_UINT16(from) << 16);
}

enum { LARGEST = TERSE_BF16_LARGEST, INFINITE = TERSE_BF16_INFINITE };
#define plainer terse_bf16_scalar
#include "../../shared/half-floats/half_floats_vector.h"

TERSE_HALF_TABLE(TERSE_NAMED(terse_bf16), "bf16", TERSE_IMPLEMENTATION)
