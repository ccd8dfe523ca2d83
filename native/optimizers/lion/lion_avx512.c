#include "terse/vector_avx512.h"

#include "lion_vector.h"
