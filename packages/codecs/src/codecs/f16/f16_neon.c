#include "terse/vector_neon.h"

#include "f16_vector.h"
