#include "terse/vector_avx512.h"

#include "reductions_vector.h"
