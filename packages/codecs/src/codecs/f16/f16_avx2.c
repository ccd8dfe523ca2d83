#include "terse/vector_avx2.h"

#include "f16_vector.h"
