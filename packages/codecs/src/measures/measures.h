// Measures: what the scales of a region are made of. Every implementation gives the same bits, whatever its vectors' width:
//
//   partial[j] of 64 Ki elements = sum over i = j, j + 16, j + 32, ... in that order, in fp64           j = 0 .. 15
//   fold: partial[j] += partial[j + 8] for j < 8, then + 4, + 2, + 1;  the sum = partial[0] of each 64 Ki, added in order
//
// All take any n, 0 included, and any float alignment of 4. Finite floats never overflow a sum in fp64, so a sum that is not finite
// says that an element is not.
#ifndef TERSE_MEASURES_H
#define TERSE_MEASURES_H
#include <stddef.h>
#include <stdint.h>

enum { TERSE_MEASURE_CHUNK = 1 << 16 };

typedef struct terse_measures {
    double (*sum_of_magnitudes)(const float *x, size_t n);
    double (*sum_of_squares)(const float *x, size_t n);
    float (*largest)(const float *x, size_t n);  // of the magnitudes; NaN or infinity if there is one, 0 where n is 0
} terse_measures;

extern const terse_measures terse_measures_scalar, terse_measures_avx2, terse_measures_avx512, terse_measures_neon;

// Measures on several threads: from what sums each chunk of a range, and from what looks at a range.
typedef void terse_chunk_sums(double *of_chunks, const float *x, size_t n);
double terse_measures_sum(terse_chunk_sums *sums, const float *x, size_t n);
float terse_measures_largest(float (*largest)(const float *x, size_t n), const float *x, size_t n);

// The standard deviation, sqrt(mean (x - mean x)^2), both means summed as above; 0 where all elements are equal. All are finite.
double terse_deviation(const float *x, size_t n);

// The first NaN or infinity, n where there is none.
size_t terse_first_not_finite(const float *x, size_t n);

// The fold and the outer sum, for implementations to end with.
static inline double terse_measures_fold(double partial[16]) {
    for (int stride = 8; stride; stride /= 2)
        for (int j = 0; j < stride; j++) partial[j] += partial[j + stride];
    return partial[0];
}

#endif
