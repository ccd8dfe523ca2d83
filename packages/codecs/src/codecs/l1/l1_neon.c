#include "../../shared/fields/fields_neon.h"

#include "quantise_vector.h"

TERSE_L1(neon, quantise, NULL)
