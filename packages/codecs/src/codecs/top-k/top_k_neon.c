#include "terse/vector_neon.h"

#define TOP_K_F16 terse_f16_neon
#include "top_k_vector.h"
