#include "../find.h"

#define ADAMW(X)                         \
    ON_X86(X, adamw, avx512, HAS_AVX512) \
    ON_X86(X, adamw, avx2, HAS_AVX2)     \
    X(adamw, scalar, 1)

LIST(adamw, ADAMW)
