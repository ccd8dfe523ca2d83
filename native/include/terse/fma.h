// a b + c, rounded once.
#ifndef TERSE_FMA_H
#define TERSE_FMA_H
#include <stdint.h>
#include <string.h>

// Written here, because programs link the codecs without libm. The product is exact in double. Its sum with c is
// rounded to odd there, so that rounding it to float gives what one rounding would have given (Boldo and Melquiond
// 2008, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd").
static inline float terse_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);  // an instruction
#else
    const double product = (double)a * b, sum = product + c, other = sum - product;
    const double rest = (product - (sum - other)) + (c - other);  // what the sum has lost: exact
    if (rest == 0 || sum - sum != 0) return (float)sum;
    uint64_t word;
    memcpy(&word, &sum, sizeof word);
    if (word % 2 == 0) word += (rest > 0) == (sum > 0) ? 1 : UINT64_MAX;
    double odd;
    memcpy(&odd, &word, sizeof odd);
    return (float)odd;
#endif
}

#endif
