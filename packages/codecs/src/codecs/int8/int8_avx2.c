#include "terse/vector_avx2.h"

#include "int8_vector.h"

TERSE_INT8(avx2, write, read)
