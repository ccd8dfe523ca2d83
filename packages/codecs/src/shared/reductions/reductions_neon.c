#include "terse/vector_neon.h"

#include "reductions_vector.h"
