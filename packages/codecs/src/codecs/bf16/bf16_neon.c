#include "terse/vector_neon.h"

#include "bf16_vector.h"
