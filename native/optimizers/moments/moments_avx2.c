#include "moments.h"

const terse_moments terse_moments_avx2 = {"avx2", accumulate, carry, squares, apply, refresh};
