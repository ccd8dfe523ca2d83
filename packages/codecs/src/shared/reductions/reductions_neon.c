#include <arm_neon.h>

#include "../signs/signs_neon.h"
#include "reductions.h"

enum sums { MAGNITUDES, SQUARES, SQUARES_AND_SIGNS };

static inline __attribute__((always_inline)) float64x2_t term(float32x2_t x, const enum sums of) {
    const float64x2_t value = vcvt_f64_f32(x);
    return of == MAGNITUDES ? vabsq_f64(value) : vmulq_f64(value, value);
}

static inline __attribute__((always_inline)) void add_16(float64x2_t sums[8], const float *x, const enum sums of) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) sums[j] = vaddq_f64(sums[j], term(vld1_f32(x + 2 * j), of));
}

static inline __attribute__((always_inline)) void write_64(uint8_t *signs, const float *x, int zero_is_plus) {
    uint32x4_t plus[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) plus[k] = zero_is_plus ? vcgezq_f32(vld1q_f32(x + 4 * k)) : vcgtzq_f32(vld1q_f32(x + 4 * k));
    vst1_u8(signs, terse_packed(plus));
}

static inline __attribute__((always_inline)) void sum(double *of_chunks, const float *x, size_t n, terse_signs signs, const enum sums of) {
    for (size_t at = 0; at < n; at += TERSE_REDUCTION_CHUNK) {
        const size_t end = n - at < TERSE_REDUCTION_CHUNK ? n : at + TERSE_REDUCTION_CHUNK;
        float64x2_t sums[8];
        for (int j = 0; j < 8; j++) sums[j] = vdupq_n_f64(0);
        size_t i = at;
        if (of == SQUARES_AND_SIGNS) {
            for (; i + 64 <= end; i += 64) {
                for (size_t k = i; k < i + 64; k += 16) add_16(sums, x + k, of);
                write_64(signs.bytes + i / 8, x + i, signs.zero_is_plus);
            }
            terse_write_signs(signs.bytes + i / 8, x + i, end - i, signs.zero_is_plus);
        }
        for (; i + 16 <= end; i += 16) add_16(sums, x + i, of);
        double partial[16];
        for (int j = 0; j < 8; j++) vst1q_f64(partial + 2 * j, sums[j]);
        for (; i < end; i++) {
            const double value = x[i];
            partial[(i - at) % 16] += of == MAGNITUDES ? __builtin_fabs(value) : value * value;
        }
        *of_chunks++ = terse_reductions_fold(partial);
    }
}

static void magnitudes_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs none) { sum(of_chunks, x, n, none, MAGNITUDES); }
static void squares_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs none) { sum(of_chunks, x, n, none, SQUARES); }
static void squares_and_signs_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs signs) { sum(of_chunks, x, n, signs, SQUARES_AND_SIGNS); }
static double sum_of_magnitudes(const float *x, size_t n) { return terse_reductions_sum(magnitudes_of_chunks, x, n, (terse_signs){0}); }
static double sum_of_squares(const float *x, size_t n) { return terse_reductions_sum(squares_of_chunks, x, n, (terse_signs){0}); }
static double sum_of_squares_and_signs(uint8_t *signs, const float *x, size_t n, int zero_is_plus) {
    return terse_reductions_sum(squares_and_signs_of_chunks, x, n, (terse_signs){signs, zero_is_plus});
}

static float largest_of_part(const float *x, size_t n) {
    const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);
    uint32x4_t most[4] = {vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) most[j] = vmaxq_u32(most[j], vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i + 4 * j)), magnitude));
    float found[5];
    vst1q_f32(found, vreinterpretq_f32_u32(vmaxq_u32(vmaxq_u32(most[0], most[1]), vmaxq_u32(most[2], most[3]))));
    found[4] = terse_reductions_scalar.largest(x + i, n - i);
    return terse_reductions_scalar.largest(found, 5);
}

static float largest(const float *x, size_t n) { return terse_reductions_largest(largest_of_part, x, n); }

const terse_reductions terse_reductions_neon = {sum_of_magnitudes, sum_of_squares, sum_of_squares_and_signs, largest};
