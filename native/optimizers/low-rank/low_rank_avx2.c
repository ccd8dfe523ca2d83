#include <immintrin.h>

typedef __m256 vec;
enum { LANES = 8, ROWS = 6 };
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define SPLAT _mm256_set1_ps
#define FMA _mm256_fmadd_ps

#include "low_rank.h"

const terse_low_rank terse_low_rank_avx2 = {"avx2", packed_floats, pack, add, normalize};
