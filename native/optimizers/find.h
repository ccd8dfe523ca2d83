// For the find.c of a family, which lists its implementations, the best first: X(kernels, implementation, whether this
// machine can run it).
#ifndef TERSE_FIND_H
#define TERSE_FIND_H
#include <stdlib.h>
#include <string.h>

#include "terse/optimizers.h"

#if defined(__x86_64__)
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#define HAS_FMA (HAS_AVX2 && __builtin_cpu_supports("fma"))
#define HAS_AVX512 __builtin_cpu_supports("avx512f")
#define ON_X86(X, kernels, implementation, runs) X(kernels, implementation, runs)
#else
#define ON_X86(X, kernels, implementation, runs)
#endif

#define DECLARE(kernels, implementation, runs) extern const terse_##kernels terse_##kernels##_##implementation;
#define AT(kernels, implementation, runs) \
    if ((runs) && i-- == 0) return &terse_##kernels##_##implementation;

// Defines terse_<kernels>_at and terse_<kernels>_find from one list.
#define LIST(kernels, ENTRIES)                                                                         \
    ENTRIES(DECLARE)                                                                                   \
    const terse_##kernels *terse_##kernels##_at(size_t i) {                                            \
        ENTRIES(AT)                                                                                    \
        return NULL;                                                                                   \
    }                                                                                                  \
    terse_optimizer_status terse_##kernels##_find(const terse_##kernels **found, const char *wanted) { \
        if (!wanted) wanted = getenv("TERSE_IMPLEMENTATION");                                          \
        const terse_##kernels *at;                                                                     \
        for (size_t i = 0; (at = terse_##kernels##_at(i)); i++)                                        \
            if (!wanted || !*wanted || !strcmp(at->implementation, wanted)) {                          \
                *found = at;                                                                           \
                return TERSE_OPTIMIZER_OK;                                                             \
            }                                                                                          \
        return TERSE_OPTIMIZER_UNAVAILABLE;                                                            \
    }

#endif
