#include "terse/vector_avx512.h"

#include "adamw_vector.h"
