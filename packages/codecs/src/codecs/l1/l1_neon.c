#include "../../shared/fields/fields_neon.h"

#include "quantise_vector.h"

static const terse_levels_codec l1 = {TERSE_L1_REACH,        measure, terse_l1_scale, TERSE_SUM, quantise,
                                      terse_fields_add_neon, NULL};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, neon)
