#include <arm_neon.h>

#include "fields.h"
#include "terse/walk.h"

typedef struct adding {
    float *sum;
    const uint8_t *fields;
    size_t width;
    uint8x16_t place[2];  // of 4 fields each: their bytes,
    int32x4_t shift[2];   // where they begin in them,
    uint32x4_t mask, most;  // and what is theirs
    float64x2_t offset, unit;
    float32x4_t scale;
} adding;

static inline float64x2_t value(const adding *a, uint32x2_t field) {
    return vmulq_f64(vsubq_f64(vcvtq_f64_u64(vmovl_u32(field)), a->offset), a->unit);
}

TERSE_ROUND_FUNCTION add_round(void *context, size_t i) {
    const adding *a = context;
    for (size_t k = 0; k < 64; k += 8) {
        const uint8x16_t bytes = vld1q_u8(a->fields + (i + k) / 8 * a->width);
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; half++) {
            float *sum = a->sum + i + k + 4 * half;
            const uint32x4_t placed = vshlq_u32(vreinterpretq_u32_u8(vqtbl1q_u8(bytes, a->place[half])), a->shift[half]);
            const uint32x4_t field = vminq_u32(vandq_u32(placed, a->mask), a->most);
            const float32x2_t low = vcvt_f32_f64(value(a, vget_low_u32(field)));
            const float32x4_t values = vcvt_high_f32_f64(low, value(a, vget_high_u32(field)));
            vst1q_f32(sum, vaddq_f32(vld1q_f32(sum), vmulq_f32(values, a->scale)));
        }
    }
}

void terse_fields_add_neon(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *m, float scale, size_t from, size_t to) {
    // Eight fields are read as 16 bytes: the last of a round must not reach beyond the last byte.
    const size_t bytes = terse_field_bytes(n, m->width), readable = bytes < 16 ? 0 : (bytes - 16) * 8 / m->width / 8 * 8 + 8;
    const size_t first = (from + 7) / 8 * 8, last = to < readable ? to : readable;
    size_t done = from;
    if (first < last) {
        terse_fields_add_scalar(sum, fields, n, m, scale, from, first);
        adding a = {
            .sum = sum + first, .fields = fields + first / 8 * m->width, .width = m->width,
            .mask = vdupq_n_u32((1u << m->width) - 1), .most = vdupq_n_u32(m->most),
            .offset = vdupq_n_f64(m->offset), .unit = vdupq_n_f64(m->unit), .scale = vdupq_n_f32(scale),
        };
        static const uint32_t numbers[2][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}};
        for (int half = 0; half < 2; half++) {
            const uint32x4_t bit = vmulq_n_u32(vld1q_u32(numbers[half]), m->width), byte = vshrq_n_u32(bit, 3);
            const uint32x4_t next = vshlq_n_u32(vaddq_u32(byte, vdupq_n_u32(1)), 8), nothing = vdupq_n_u32(0xffff0000);
            a.place[half] = vreinterpretq_u8_u32(vorrq_u32(vorrq_u32(byte, next), nothing));
            a.shift[half] = vnegq_s32(vreinterpretq_s32_u32(vandq_u32(bit, vdupq_n_u32(7))));
        }
        done = first + terse_walk(last - first, add_round, &a);
    }
    terse_fields_add_scalar(sum, fields, n, m, scale, done, to);
}
