#include "terse/vector_neon.h"

#include "sign_vector.h"
