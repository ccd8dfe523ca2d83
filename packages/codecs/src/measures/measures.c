#include "measures.h"

#include <math.h>
#include <string.h>

enum term { PLAIN, MAGNITUDE, SQUARE };

static inline double sum(const float *x, size_t n, double about, enum term term) {
    double all = 0;
    for (size_t at = 0; at < n; at += TERSE_MEASURE_CHUNK) {
        const size_t length = n - at < TERSE_MEASURE_CHUNK ? n - at : TERSE_MEASURE_CHUNK;
        double partial[16] = {0};
        for (size_t i = 0; i < length; i++) {
            const double value = x[at + i] - about;
            partial[i % 16] += term == SQUARE ? value * value : term == MAGNITUDE ? fabs(value) : value;
        }
        all += terse_measures_fold(partial);
    }
    return all;
}

static double sum_of_magnitudes(const float *x, size_t n) { return sum(x, n, 0, MAGNITUDE); }
static double sum_of_squares(const float *x, size_t n) { return sum(x, n, 0, SQUARE); }

static float largest(const float *x, size_t n) {
    // Magnitudes order like their bits, and infinities and NaN lie above all.
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        bits &= 0x7fffffffu;
        if (bits > most) most = bits;
    }
    float value;
    memcpy(&value, &most, 4);
    return value;
}

double terse_deviation(const float *x, size_t n) {
    if (n == 0) return 0;
    const double mean = sum(x, n, 0, PLAIN) / (double)n;
    return sqrt(sum(x, n, mean, SQUARE) / (double)n);
}

size_t terse_first_not_finite(const float *x, size_t n) {
    enum { AT_ONCE = 64 };
    size_t i = 0;
    for (int bad = 0; i + AT_ONCE <= n; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) bad |= x[i + k] - x[i + k] != 0.0f;
        if (bad) break;
    }
    for (; i < n; i++)
        if (x[i] - x[i] != 0.0f) return i;
    return n;
}

const terse_measures terse_measures_scalar = {sum_of_magnitudes, sum_of_squares, largest};
