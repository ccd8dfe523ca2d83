#include <stdint.h>

// A comparison of vectors sets a true lane to all ones, -1.
enum { LANES = 2, INTS = 4, COMPARED = -1 };
typedef double lanes __attribute__((vector_size(8 * LANES), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * INTS), may_alias));
#define reductions (&terse_reductions_neon)
#define plainer terse_dct_top_k_scalar
#include "dct_top_k_vector.h"

DCT_TOP_K(neon)
