#include "../../shared/fields/fields_neon.h"

#include "count_vector.h"
