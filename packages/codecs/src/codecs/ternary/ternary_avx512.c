#include "terse/vector_avx512.h"

#include "ternary_vector.h"
