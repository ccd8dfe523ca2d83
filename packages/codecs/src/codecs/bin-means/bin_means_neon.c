#include "../../shared/fields/fields_neon.h"

#include "bin_means_vector.h"

TERSE_BIN_MEANS(neon, sum_chunk, write)
