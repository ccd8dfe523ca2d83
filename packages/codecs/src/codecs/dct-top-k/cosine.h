// The cosine that the transform is made of.
#ifndef TERSE_COSINE_H
#define TERSE_COSINE_H
#include <stddef.h>

#include "../../shared/also_on_device.h"

// cos(pi p / 2 q) for 0 <= p <= q, from additions, multiplications and one division.
// Taylor's series with all terms that matter below pi / 4. A library's cosine could differ from machine to machine.
TERSE_ALSO_ON_DEVICE static inline double dct_cosine(size_t p, size_t q) {
    const double half_pi = 0x1.921fb54442d18p0;
    if (2 * p <= q) {
        const double x = half_pi * ((double)p / (double)q), z = x * x;
        double sum = 1.0 / 20922789888000.0;
        sum = sum * z - 1.0 / 87178291200.0;
        sum = sum * z + 1.0 / 479001600.0;
        sum = sum * z - 1.0 / 3628800.0;
        sum = sum * z + 1.0 / 40320.0;
        sum = sum * z - 1.0 / 720.0;
        sum = sum * z + 1.0 / 24.0;
        sum = sum * z - 0.5;
        return sum * z + 1.0;
    }
    const double x = half_pi * ((double)(q - p) / (double)q), z = x * x;  // as a sine
    double sum = 1.0 / 355687428096000.0;
    sum = sum * z - 1.0 / 1307674368000.0;
    sum = sum * z + 1.0 / 6227020800.0;
    sum = sum * z - 1.0 / 39916800.0;
    sum = sum * z + 1.0 / 362880.0;
    sum = sum * z - 1.0 / 5040.0;
    sum = sum * z + 1.0 / 120.0;
    sum = sum * z - 1.0 / 6.0;
    return sum * z * x + x;
}

#endif
