#include "../../shared/fields/fields_avx512.h"

#include "one_pass_vector.h"

TERSE_L1(avx512, quantise, encode_in_one_pass)
