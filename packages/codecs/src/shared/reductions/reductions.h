// Reductions over a scale group, from which its scale is computed. Every implementation gives the same bits, whatever
// its vector width:
//
//   partial[j] of 64 Ki elements = sum over i = j, j + 16, j + 32, ... in that order, in fp64           j = 0 .. 15
//   fold: partial[j] += partial[j + 8] for j < 8, then + 4, + 2, + 1
//   the sum = partial[0] of each 64 Ki, added in order
//
// All of them take any n, including 0, and floats at any multiple of 4 bytes. Finite floats cannot overflow a sum in
// fp64, so a sum is not finite only if an element is not.
#ifndef TERSE_REDUCTIONS_H
#define TERSE_REDUCTIONS_H
#include <stddef.h>
#include <stdint.h>

enum { TERSE_REDUCTION_CHUNK = 1 << 16 };

typedef struct terse_reductions {
    double (*sum_of_magnitudes)(const float *x, size_t n);
    double (*sum_of_squares)(const float *x, size_t n);
    // Also writes the signs as the codec sign does, ceil(n / 8) bytes, so that x is read once.
    double (*sum_of_squares_and_signs)(uint8_t *signs, const float *x, size_t n, int zero_is_plus);
    float (*largest)(const float *x, size_t n);  // the largest magnitude; NaN or infinity if there is one, 0 if n is 0
} terse_reductions;

extern const terse_reductions terse_reductions_scalar, terse_reductions_avx2, terse_reductions_avx512,
    terse_reductions_neon;

// How the reductions of chunks become that of all.
typedef enum terse_combination { TERSE_SUM, TERSE_LARGEST } terse_combination;

// The reduction of n elements from those of their chunks. Not finite if one of them is not.
static inline double terse_reductions_combine(const double *of_chunks, size_t n, terse_combination how) {
    double all = 0;
    for (size_t c = 0; c * TERSE_REDUCTION_CHUNK < n; c++) {
        if (how == TERSE_SUM) all += of_chunks[c];
        else if (all - all == 0 && !(of_chunks[c] <= all)) all = of_chunks[c];
    }
    return all;
}

// Where the signs of x are written; NULL: nowhere.
typedef struct terse_signs {
    uint8_t *bytes;
    int zero_is_plus;
} terse_signs;

// Reductions on several threads, from a function that sums each chunk of a range, and one that reduces a range.
typedef void terse_chunk_sums(double *of_chunks, const float *x, size_t n, terse_signs signs);
double terse_reductions_sum(terse_chunk_sums *sums, const float *x, size_t n, terse_signs signs);
float terse_reductions_largest(float (*largest)(const float *x, size_t n), const float *x, size_t n);

// The standard deviation, sqrt(mean (x - mean x)^2), with sums as above; 0 if all elements are equal. All elements are
// finite.
double terse_deviation(const float *x, size_t n);

// The index of the first NaN or infinity; n if there is none.
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
        for (size_t j = i; j < n && j < i + 8; j++)
            byte |= (unsigned)(x[j] > 0.0f || (zero_is_plus && x[j] == 0.0f)) << (j - i);
        bytes[i / 8] = (uint8_t)byte;
    }
}

#endif
