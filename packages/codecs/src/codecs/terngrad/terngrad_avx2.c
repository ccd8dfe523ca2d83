#include "terse/vector_avx2.h"

#include "terngrad_vector.h"

TERSE_TERNGRAD(avx2)
