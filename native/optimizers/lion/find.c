#include "../find.h"

#define LION(X)                         \
    ON_X86(X, lion, avx512, HAS_AVX512) \
    ON_X86(X, lion, avx2, HAS_AVX2)     \
    X(lion, scalar, 1)

LIST(lion, LION)
