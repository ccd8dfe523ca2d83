#include "terse/vector_avx512.h"

#include "sign_vector.h"
