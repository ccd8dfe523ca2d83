// Instructions that every processor of its architecture has: vectors of NEON on ARM, single floats elsewhere.
#include <math.h>

#if defined(__ARM_NEON)
#include "terse/vector_neon.h"

enum { ROWS = 12 };
#else
typedef float vec;
enum { LANES = 1, ROWS = 4 };
#define LOAD(at) (*(at))
#define STORE(at, value) (*(at) = (value))
#define SPLAT(value) (value)
#define FMA fmaf
#endif

#include "low_rank.h"

const terse_low_rank terse_low_rank_scalar = {"scalar", packed_floats, pack, add, normalize};
