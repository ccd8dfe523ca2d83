#include "terse/vector_neon.h"

#include "scaled_sign_vector.h"

TERSE_SCALED_SIGN(neon)
