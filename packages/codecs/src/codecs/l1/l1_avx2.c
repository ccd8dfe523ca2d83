#include "../../shared/fields/fields_avx2.h"

#include "one_pass_vector.h"

TERSE_L1(avx2, quantise, encode_in_one_pass)
