#include "moments.h"

const terse_moments terse_moments_scalar = {"scalar", accumulate, carry, squares, apply, refresh};
