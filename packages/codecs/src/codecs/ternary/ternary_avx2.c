#include "terse/vector_avx2.h"

#include "ternary_vector.h"
