#include "../find.h"

#define REDUCTIONS(X)                     \
    ON_X86(X, reductions, avx2, HAS_AVX2) \
    X(reductions, scalar, 1)

LIST(reductions, REDUCTIONS)
