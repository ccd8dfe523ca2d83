#include "terse/vector_avx2.h"

#include "moments_vector.h"
