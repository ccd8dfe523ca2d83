#include "terse/vector_avx2.h"

#include "reductions_vector.h"
