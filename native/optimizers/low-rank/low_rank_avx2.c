#include "terse/vector_avx2.h"

enum { ROWS = 6 };

#include "low_rank.h"

const terse_low_rank terse_low_rank_avx2 = {"avx2", packed_floats, pack, add, normalize};
