// f16 in the words of terse/vector.h, which a file includes before this one.
#include "f16.h"

static inline __attribute__((always_inline)) void store_halves(uint8_t *to, vec x) { STORE_F16(to, x); }

static inline __attribute__((always_inline)) vec load_halves(const uint8_t *from) { return LOAD_F16(from); }

enum { LARGEST = TERSE_F16_LARGEST, INFINITE = TERSE_F16_INFINITE };
#define plainer terse_f16_scalar
#include "../../shared/half-floats/half_floats_vector.h"

TERSE_HALF_TABLE(TERSE_NAMED(terse_f16), "f16", TERSE_IMPLEMENTATION)
