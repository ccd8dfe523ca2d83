#include "../find.h"

#define SGD(X)                     \
    ON_X86(X, sgd, avx2, HAS_AVX2) \
    X(sgd, scalar, 1)

LIST(sgd, SGD)
