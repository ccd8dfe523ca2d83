#include "../../shared/fields/fields_avx512.h"

#include "one_pass_vector.h"

static const terse_levels_codec l1 = {TERSE_L1_REACH,          measure,           terse_l1_scale, TERSE_SUM, quantise,
                                      terse_fields_add_avx512, encode_in_one_pass};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, avx512)
