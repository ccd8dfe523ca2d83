#include "measures.h"

#include <math.h>
#include <string.h>

static double sum(const float *x, size_t n, int squared) {
    double all = 0;
    for (size_t at = 0; at < n; at += TERSE_MEASURE_CHUNK) {
        const size_t length = n - at < TERSE_MEASURE_CHUNK ? n - at : TERSE_MEASURE_CHUNK;
        double partial[16] = {0};
        for (size_t i = 0; i < length; i++) {
            const double value = x[at + i];
            partial[i % 16] += squared ? value * value : fabs(value);
        }
        all += terse_measures_fold(partial);
    }
    return all;
}

static double sum_of_magnitudes(const float *x, size_t n) { return sum(x, n, 0); }
static double sum_of_squares(const float *x, size_t n) { return sum(x, n, 1); }

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

size_t terse_first_not_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (x[i] - x[i] != 0.0f) return i;
    return n;
}

const terse_measures terse_measures_scalar = {sum_of_magnitudes, sum_of_squares, largest};
