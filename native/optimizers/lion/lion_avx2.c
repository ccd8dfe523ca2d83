#include "terse/vector_avx2.h"

#include "lion_vector.h"
