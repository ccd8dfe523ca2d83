#include "../../shared/fields/fields_avx512.h"

#include "bin_means_vector.h"

TERSE_BIN_MEANS(avx512, sum_chunk, write)
