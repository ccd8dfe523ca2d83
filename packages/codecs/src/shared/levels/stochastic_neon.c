#include "../fields/fields_neon.h"

#include "stochastic_vector.h"
