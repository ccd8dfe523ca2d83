#include "terse/vector_avx512.h"

#include "scaled_sign_vector.h"

TERSE_SCALED_SIGN(avx512)
