#include "terse/vector_avx2.h"

#include "check_vector.h"
