#include "terse/vector_avx512.h"

#include "top_k_vector.h"
