#include "terse/vector_neon.h"

#include "check_vector.h"
