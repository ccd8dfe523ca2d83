#include "../find.h"

#define LOW_RANK(X)                         \
    ON_X86(X, low_rank, avx512, HAS_AVX512) \
    ON_X86(X, low_rank, avx2, HAS_FMA)      \
    X(low_rank, scalar, 1)

LIST(low_rank, LOW_RANK)
