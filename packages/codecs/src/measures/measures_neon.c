#include <arm_neon.h>

#include "measures.h"

static inline __attribute__((always_inline)) float64x2_t term(float32x2_t x, const int squared) {
    const float64x2_t value = vcvt_f64_f32(x);
    return squared ? vmulq_f64(value, value) : vabsq_f64(value);
}

static inline __attribute__((always_inline)) void sum(double *of_chunks, const float *x, size_t n, const int squared) {
    for (size_t at = 0; at < n; at += TERSE_MEASURE_CHUNK) {
        const size_t length = n - at < TERSE_MEASURE_CHUNK ? n - at : TERSE_MEASURE_CHUNK;
        float64x2_t sums[8];
        for (int j = 0; j < 8; j++) sums[j] = vdupq_n_f64(0);
        size_t i = 0;
        for (; i + 16 <= length; i += 16)
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) sums[j] = vaddq_f64(sums[j], term(vld1_f32(x + at + i + 2 * j), squared));
        double partial[16];
        for (int j = 0; j < 8; j++) vst1q_f64(partial + 2 * j, sums[j]);
        for (; i < length; i++) {
            const double value = x[at + i];
            partial[i % 16] += squared ? value * value : __builtin_fabs(value);
        }
        *of_chunks++ = terse_measures_fold(partial);
    }
}

static void magnitudes_of_chunks(double *of_chunks, const float *x, size_t n) { sum(of_chunks, x, n, 0); }
static void squares_of_chunks(double *of_chunks, const float *x, size_t n) { sum(of_chunks, x, n, 1); }
static double sum_of_magnitudes(const float *x, size_t n) { return terse_measures_sum(magnitudes_of_chunks, x, n); }
static double sum_of_squares(const float *x, size_t n) { return terse_measures_sum(squares_of_chunks, x, n); }

static float largest_of_part(const float *x, size_t n) {
    const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);
    uint32x4_t most[4] = {vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) most[j] = vmaxq_u32(most[j], vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i + 4 * j)), magnitude));
    float found[5];
    vst1q_f32(found, vreinterpretq_f32_u32(vmaxq_u32(vmaxq_u32(most[0], most[1]), vmaxq_u32(most[2], most[3]))));
    found[4] = terse_measures_scalar.largest(x + i, n - i);
    return terse_measures_scalar.largest(found, 5);
}

static float largest(const float *x, size_t n) { return terse_measures_largest(largest_of_part, x, n); }

const terse_measures terse_measures_neon = {sum_of_magnitudes, sum_of_squares, largest};
