#include "terse/vector_avx2.h"

#include "bf16_vector.h"
