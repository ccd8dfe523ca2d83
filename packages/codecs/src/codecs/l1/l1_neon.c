#include "../../shared/fields/fields_neon.h"
#include "l1.h"
#include "terse/walk.h"

typedef struct quantising {
    uint8_t *fields;
    const float *x;
    terse_packing_neon packing;
    float64x2_t factor;
    float32x4_t most;  // what becomes level s
    uint8x16_t s;
} quantising;

static inline int32x2_t level_2(const quantising *q, float32x2_t x) {
    const float64x2_t level = vmulq_f64(vcvt_f64_f32(x), q->factor);
    return vmovn_s64(vreinterpretq_s64_f64(vaddq_f64(vaddq_f64(level, vdupq_n_f64(TERSE_L1_MEND)), vdupq_n_f64(TERSE_L1_ROUND))));
}

static inline int32x4_t level_4(const quantising *q, const float *x) {
    const float32x4_t limited = vmaxq_f32(vminq_f32(vld1q_f32(x), q->most), vnegq_f32(q->most));
    return vcombine_s32(level_2(q, vget_low_f32(limited)), level_2(q, vget_high_f32(limited)));
}

TERSE_ROUND_FUNCTION quantise_round(void *context, size_t i) {
    const quantising *q = context;
    uint8x16_t fields[4];
    for (int k = 0; k < 4; k++) {
        const float *x = q->x + i + 16 * k;
        fields[k] = vaddq_u8(terse_bytes_neon(level_4(q, x), level_4(q, x + 4), level_4(q, x + 8), level_4(q, x + 12)), q->s);
    }
    terse_pack_64_neon(&q->packing, q->fields, i, fields);
}

static void quantise(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from, size_t to) {
    const size_t first = (from + 7) / 8 * 8;
    size_t done = from;
    if (first < to) {
        terse_l1_quantise_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o);
        quantising q = {
            fields + first / 8 * terse_field_width(o), x + first, terse_packing_neon_of(terse_field_width(o)),
            vdupq_n_f64(terse_l1_factor(o, scale)), vdupq_n_f32((float)(s / terse_l1_factor(o, scale))), vdupq_n_u8((uint8_t)s),
        };
        done = first + terse_walk(to - first, quantise_round, &q);
    }
    terse_l1_quantise_scalar(fields, x, o, scale, done, to);
}

static double scale_of(const float *x, size_t n) { return terse_reductions_neon.sum_of_magnitudes(x, n) / (double)n; }

static const terse_levels_codec l1 = {TERSE_L1_REACH, scale_of, quantise, terse_fields_add_neon, NULL};
TERSE_LEVELS_TABLE(l1, l1, TERSE_L1_TAKES, neon)
