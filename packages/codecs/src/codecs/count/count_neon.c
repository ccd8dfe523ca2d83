#include "../../shared/fields/fields_neon.h"
#include "count.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *fields;
    const float *x;
    terse_packing_neon packing;
    float32x4_t s;
    uint32x4_t zero_is_plus, bad;  // bad: SIMD lanes with a number that cannot be written
} encoding;

// 1 where plus.
static inline int32x4_t sign_4(encoding *e, size_t i) {
    const float32x4_t x = vld1q_f32(e->x + i);
    e->bad = vorrq_u32(e->bad, vreinterpretq_u32_f32(vsubq_f32(x, x)));
    const uint32x4_t plus = vorrq_u32(vcgtzq_f32(x), vandq_u32(vceqzq_f32(x), e->zero_is_plus));
    return vreinterpretq_s32_u32(vshrq_n_u32(plus, 31));
}

static inline int32x4_t level_4(encoding *e, size_t i) {
    const float32x4_t x = vld1q_f32(e->x + i);
    const uint32x4_t fits = vandq_u32(vcleq_f32(vabsq_f32(x), e->s), vceqq_f32(x, vrndq_f32(x)));
    e->bad = vorrq_u32(e->bad, vmvnq_u32(fits));
    return vcvtq_s32_f32(vaddq_f32(x, e->s));
}

TERSE_ROUND_FUNCTION sign_round(void *context, size_t i) {
    encoding *e = context;
    uint8x16_t fields[4];
    for (size_t k = 0; k < 4; k++, i += 16) fields[k] = terse_bytes_neon(sign_4(e, i), sign_4(e, i + 4), sign_4(e, i + 8), sign_4(e, i + 12));
    terse_pack_64_neon(&e->packing, e->fields, i - 64, fields);
}

TERSE_ROUND_FUNCTION level_round(void *context, size_t i) {
    encoding *e = context;
    uint8x16_t fields[4];
    for (size_t k = 0; k < 4; k++, i += 16) fields[k] = terse_bytes_neon(level_4(e, i), level_4(e, i + 4), level_4(e, i + 8), level_4(e, i + 12));
    terse_pack_64_neon(&e->packing, e->fields, i - 64, fields);
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const unsigned bits = terse_field_bits(o), width = terse_field_width(o);
    encoding e = {
        wire + begin / 8 * width, x + begin, terse_packing_neon_of(width), vdupq_n_f32((float)((1 << (bits - 1)) - 1)),
        vdupq_n_u32(o->zero == TERSE_ZERO_PLUS ? ~0u : 0), vdupq_n_u32(0),
    };
    const size_t done = begin + (bits == 1 ? terse_walk(end - begin, sign_round, &e) : terse_walk(end - begin, level_round, &e));
    // A number that does not fit: the scalar code finds the first one.
    return terse_count_encode_scalar(wire, x, n, o, vmaxvq_u32(e.bad) ? begin : done, end);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const terse_field_meaning meaning = terse_count_meaning(o);
    terse_fields_add_neon(sum, wire, n, &meaning, o->scale, begin, end);
    return TERSE_CODEC_OK;
}

const terse_codec terse_count_neon = {
    .name = "count", .implementation = "neon", .takes = TERSE_COUNT_TAKES, .check = terse_count_check,
    .wire_bytes = terse_count_wire_bytes, .encode = encode, .decode_add = decode_add,
};
