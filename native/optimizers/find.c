// The list of implementations, and which of them this machine can run.
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

// Each entry: kernels, implementation, whether this machine can run it. Best first.
#define LION(X)                           \
    ON_X86(X, lion, avx512, HAS_AVX512)   \
    ON_X86(X, lion, avx2, HAS_AVX2)       \
    X(lion, scalar, 1)

#define ADAMW(X)                          \
    ON_X86(X, adamw, avx512, HAS_AVX512)  \
    ON_X86(X, adamw, avx2, HAS_AVX2)      \
    X(adamw, scalar, 1)

#define SGD(X)                            \
    ON_X86(X, sgd, avx2, HAS_AVX2)        \
    X(sgd, scalar, 1)

#define MOMENTS(X)                        \
    ON_X86(X, moments, avx512, HAS_AVX512) \
    ON_X86(X, moments, avx2, HAS_AVX2)    \
    X(moments, scalar, 1)

#define LOW_RANK(X)                         \
    ON_X86(X, low_rank, avx512, HAS_AVX512) \
    ON_X86(X, low_rank, avx2, HAS_FMA)      \
    X(low_rank, scalar, 1)

#define REDUCTIONS(X)                     \
    ON_X86(X, reductions, avx2, HAS_AVX2) \
    X(reductions, scalar, 1)

#define DECLARE(kernels, implementation, runs) extern const terse_##kernels terse_##kernels##_##implementation;
#define AT(kernels, implementation, runs) if ((runs) && i-- == 0) return &terse_##kernels##_##implementation;

// Defines terse_<kernels>_at and terse_<kernels>_find from one list.
#define LIST(kernels, ENTRIES)                                                                            \
    ENTRIES(DECLARE)                                                                                      \
    const terse_##kernels *terse_##kernels##_at(size_t i) {                                               \
        ENTRIES(AT)                                                                                       \
        return NULL;                                                                                      \
    }                                                                                                     \
    terse_optimizer_status terse_##kernels##_find(const terse_##kernels **found, const char *wanted) {    \
        if (!wanted) wanted = getenv("TERSE_IMPLEMENTATION");                                             \
        const terse_##kernels *at;                                                                        \
        for (size_t i = 0; (at = terse_##kernels##_at(i)); i++)                                           \
            if (!wanted || !*wanted || !strcmp(at->implementation, wanted)) {                             \
                *found = at;                                                                              \
                return TERSE_OPTIMIZER_OK;                                                                \
            }                                                                                             \
        return TERSE_OPTIMIZER_UNAVAILABLE;                                                               \
    }

LIST(lion, LION)
LIST(adamw, ADAMW)
LIST(sgd, SGD)
LIST(moments, MOMENTS)
LIST(low_rank, LOW_RANK)
LIST(reductions, REDUCTIONS)

uint32_t terse_optimizers_abi(void) { return TERSE_OPTIMIZERS_ABI; }

const char *terse_optimizer_sentence(terse_optimizer_status status) {
    switch (status) {
        case TERSE_OPTIMIZER_OK: return "No error.";
        case TERSE_OPTIMIZER_UNAVAILABLE: return "There is no such implementation, or this machine cannot run it.";
        case TERSE_OPTIMIZER_BAD_RANKS: return "A tally takes 1 to 1024 ranks.";
    }
    return "This status is not one of terse_optimizer_status.";
}
