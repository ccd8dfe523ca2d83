#include <stdint.h>

// A comparison of vectors sets a true lane to all ones, -1.
enum { LANES = 4, INTS = 8, COMPARED = -1 };
typedef double lanes __attribute__((vector_size(8 * LANES), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * INTS), may_alias));
#define reductions (&terse_reductions_avx2)
#define plainer terse_dct_top_k_scalar
#include "dct_top_k_vector.h"

const terse_codec terse_dct_top_k_avx2 = {
    .name = "dct-top-k", .implementation = "avx2", .takes = DCT_TOP_K_TAKES,
    .check = dct_top_k_check, .wire_bytes = dct_top_k_wire_bytes, .encode = encode, .is_good = dct_wire_is_good, .decode_add = decode_add,
};
