#include <immintrin.h>

typedef __m512 vec;
enum { LANES = 16, ROWS = 12 };
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define SPLAT _mm512_set1_ps
#define FMA _mm512_fmadd_ps

#include "low_rank.h"

const terse_low_rank terse_low_rank_avx512 = {"avx512", packed_floats, pack, add, normalize};
