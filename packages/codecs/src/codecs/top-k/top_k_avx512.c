#include "terse/vector_avx512.h"

#define TOP_K_F16 terse_f16_avx2
#include "top_k_vector.h"
