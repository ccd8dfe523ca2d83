#include "terse/vector_avx2.h"

#include "scaled_sign_vector.h"

TERSE_SCALED_SIGN(avx2)
