// Measures: what the scales of a scale group are made of. Every implementation gives the same bits, whatever its vectors' width:
//
//   partial[j] of 64 Ki elements = sum over i = j, j + 16, j + 32, ... in that order, in fp64           j = 0 .. 15
//   fold: partial[j] += partial[j + 8] for j < 8, then + 4, + 2, + 1;  the sum = partial[0] of each 64 Ki, added in order
//
// All take any n, 0 included, and any float alignment of 4. Finite floats never overflow a sum in fp64, so a sum that is not finite
// says that an element is not.
#ifndef TERSE_REDUCTIONS_H
#define TERSE_REDUCTIONS_H
#include <stddef.h>
#include <stdint.h>

enum { TERSE_REDUCTION_CHUNK = 1 << 16 };

typedef struct terse_reductions {
    double (*sum_of_magnitudes)(const float *x, size_t n);
    double (*sum_of_squares)(const float *x, size_t n);
    // And the bits of the signs, as sign writes them, so that x is read once: ceil(n / 8) bytes.
    double (*sum_of_squares_and_signs)(uint8_t *signs, const float *x, size_t n, int zero_is_plus);
    float (*largest)(const float *x, size_t n);  // of the magnitudes; NaN or infinity if there is one, 0 where n is 0
} terse_reductions;

extern const terse_reductions terse_reductions_scalar, terse_reductions_avx2, terse_reductions_avx512, terse_reductions_neon;

// Where the signs of x go; nowhere: NULL.
typedef struct terse_signs {
    uint8_t *bytes;
    int zero_is_plus;
} terse_signs;

// Measures on several threads: from what sums each chunk of a range, and from what looks at a range.
typedef void terse_chunk_sums(double *of_chunks, const float *x, size_t n, terse_signs signs);
double terse_reductions_sum(terse_chunk_sums *sums, const float *x, size_t n, terse_signs signs);
float terse_reductions_largest(float (*largest)(const float *x, size_t n), const float *x, size_t n);

// The standard deviation, sqrt(mean (x - mean x)^2), both means summed as above; 0 where all elements are equal. All are finite.
double terse_deviation(const float *x, size_t n);

// The first NaN or infinity, n where there is none.
size_t terse_first_not_finite(const float *x, size_t n);

// The fold and the outer sum, for implementations to end with.
static inline double terse_reductions_fold(double partial[16]) {
    for (int stride = 8; stride; stride /= 2)
        for (int j = 0; j < stride; j++) partial[j] += partial[j + stride];
    return partial[0];
}

// The signs of n elements, bit by bit, for implementations to end with.
static inline void terse_write_signs(uint8_t *bytes, const float *x, size_t n, int zero_is_plus) {
    for (size_t i = 0; i < n; i += 8) {
        unsigned byte = 0;
        for (size_t j = i; j < n && j < i + 8; j++) byte |= (unsigned)(x[j] > 0.0f || (zero_is_plus && x[j] == 0.0f)) << (j - i);
        bytes[i / 8] = (uint8_t)byte;
    }
}

#endif
