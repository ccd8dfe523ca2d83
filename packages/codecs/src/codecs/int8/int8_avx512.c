#include "terse/vector_avx512.h"

#include "int8_vector.h"

TERSE_INT8(avx512, write, read)
