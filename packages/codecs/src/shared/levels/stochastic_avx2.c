#include "../fields/fields_avx2.h"

#include "stochastic_vector.h"
