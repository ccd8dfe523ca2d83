// Instructions that every processor of its architecture has: vectors of NEON on ARM, single floats elsewhere.
#include <math.h>

#if defined(__ARM_NEON)
#include <arm_neon.h>
typedef float32x4_t vec;
enum { LANES = 4, ROWS = 12 };
#define LOAD vld1q_f32
#define STORE vst1q_f32
#define SPLAT vdupq_n_f32
#define FMA(a, b, sum) vfmaq_f32(sum, a, b)
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
