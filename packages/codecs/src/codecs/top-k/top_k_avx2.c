#include "terse/vector_avx2.h"

#include "top_k_vector.h"
