#include "../../shared/fields/fields_avx2.h"

#include "count_vector.h"
