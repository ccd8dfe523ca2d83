#include "terse/vector_neon.h"

#include "terngrad_vector.h"

TERSE_TERNGRAD(neon)
