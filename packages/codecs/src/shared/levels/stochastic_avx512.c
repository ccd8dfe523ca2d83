#include "../fields/fields_avx512.h"

#include "stochastic_vector.h"
