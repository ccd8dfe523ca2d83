#include "terse/vector_avx512.h"

#include "terngrad_vector.h"

TERSE_TERNGRAD(avx512)
