#include "terse/vector_neon.h"

#include "ternary_vector.h"
