#include "terse/vector_avx2.h"

#include "sign_vector.h"
