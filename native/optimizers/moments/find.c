#include "../find.h"

#define MOMENTS(X)                         \
    ON_X86(X, moments, avx512, HAS_AVX512) \
    ON_X86(X, moments, avx2, HAS_AVX2)     \
    X(moments, scalar, 1)

LIST(moments, MOMENTS)
