#include <stdint.h>

// A comparison of vectors sets a true lane to all ones, -1.
enum { LANES = 8, INTS = 16, COMPARED = -1 };
typedef double lanes __attribute__((vector_size(8 * LANES), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * INTS), may_alias));
#define reductions (&terse_reductions_avx512)
#define plainer terse_dct_top_k_avx2
#include "dct_top_k_vector.h"

DCT_TOP_K(avx512)
