#include "../../shared/fields/fields_avx512.h"

#include "count_vector.h"
