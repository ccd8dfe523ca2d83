#include <arm_neon.h>

#include "int8.h"

static inline int32x4_t four(const float *x, float64x2_t levels) {
    const float32x4_t v = vld1q_f32(x);
    const int64x2_t low = vcvtnq_s64_f64(vmulq_f64(vcvt_f64_f32(vget_low_f32(v)), levels));
    const int64x2_t high = vcvtnq_s64_f64(vmulq_f64(vcvt_high_f64_f32(v), levels));
    return vcombine_s32(vmovn_s64(low), vmovn_s64(high));
}

static void write(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels) {
    const float64x2_t by = vdupq_n_f64(levels);
    size_t i = begin;
    for (; i + 8 <= end; i += 8) {
        const int16x8_t q = vcombine_s16(vmovn_s32(four(x + i, by)), vmovn_s32(four(x + i + 4, by)));
        vst1_u8(bytes + i, vreinterpret_u8_s8(vmovn_s16(q)));
    }
    terse_int8_write(bytes, x, i, end, levels);
}

static inline void add_four(float *sum, int32x4_t q, float64x2_t step, float scale) {
    const float32x2_t low = vcvt_f32_f64(vmulq_f64(vcvtq_f64_s64(vmovl_s32(vget_low_s32(q))), step));
    const float32x4_t value = vcvt_high_f32_f64(low, vmulq_f64(vcvtq_f64_s64(vmovl_high_s32(q)), step));
    vst1q_f32(sum, vaddq_f32(vld1q_f32(sum), vmulq_n_f32(value, scale)));
}

static void read(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale) {
    const float64x2_t by = vdupq_n_f64(step);
    size_t i = begin;
    for (; i + 8 <= end; i += 8) {
        const int16x8_t q = vmovl_s8(vreinterpret_s8_u8(vld1_u8(bytes + i)));
        add_four(sum + i, vmovl_s16(vget_low_s16(q)), by, scale);
        add_four(sum + i + 4, vmovl_high_s16(q), by, scale);
    }
    terse_int8_read(sum, bytes, i, end, step, scale);
}

TERSE_INT8(neon, write, read)
