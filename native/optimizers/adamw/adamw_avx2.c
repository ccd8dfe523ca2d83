#include "terse/vector_avx2.h"

#include "adamw_vector.h"
