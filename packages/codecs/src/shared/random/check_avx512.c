#include "terse/vector_avx512.h"

#include "check_vector.h"
