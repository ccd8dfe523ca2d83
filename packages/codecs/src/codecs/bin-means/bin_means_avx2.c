#include "../../shared/fields/fields_avx2.h"

#include "bin_means_vector.h"

TERSE_BIN_MEANS(avx2, sum_chunk, write)
