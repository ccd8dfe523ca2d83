#include "terse/vector_neon.h"

#include "top_k_vector.h"
