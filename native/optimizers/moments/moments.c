#include "moments.h"

const terse_moments terse_moments_scalar = {"scalar", accumulate, squares, apply, refresh};
