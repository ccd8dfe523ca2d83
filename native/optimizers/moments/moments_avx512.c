#include "terse/vector_avx512.h"

#include "moments_vector.h"
