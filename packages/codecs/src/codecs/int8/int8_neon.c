#include "terse/vector_neon.h"

#include "int8_vector.h"

TERSE_INT8(neon, write, read)
