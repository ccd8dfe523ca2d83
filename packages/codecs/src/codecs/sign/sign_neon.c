#include "../../shared/signs/signs_neon.h"
#include "sign.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *wire;
    const float *x;
    const uint8_t *hold;
    uint32x4_t bad;  // the OR of all x - x: +0 for every finite x, NaN otherwise
} encoding;

// 64 floats -> 8 bytes.
static inline __attribute__((always_inline)) void encode_round(encoding *e, size_t i, const int zero_is_plus) {
    uint32x4_t plus[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        const float32x4_t x = vld1q_f32(e->x + i + 4 * k);
        e->bad = vorrq_u32(e->bad, vreinterpretq_u32_f32(vsubq_f32(x, x)));
        plus[k] = zero_is_plus ? vcgezq_f32(x) : vcgtzq_f32(x);
    }
    uint8x8_t bytes = terse_packed(plus);
    if (e->hold) bytes = vbic_u8(bytes, vld1_u8(e->hold + i / 8));
    vst1_u8(e->wire + i / 8, bytes);
}

TERSE_ROUND_FUNCTION encode_zero_plus(void *context, size_t i) { encode_round(context, i, 1); }
TERSE_ROUND_FUNCTION encode_zero_minus(void *context, size_t i) { encode_round(context, i, 0); }

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + begin / 8, x + begin, options->hold ? options->hold + begin / 8 : NULL, vdupq_n_u32(0)};
    const size_t done = begin + (options->zero == TERSE_ZERO_PLUS ? terse_walk(end - begin, encode_zero_plus, &e) : terse_walk(end - begin, encode_zero_minus, &e));
    // A number is not finite: the scalar kernel finds the first one.
    return terse_sign_scalar.encode(wire, x, n, options, vmaxvq_u32(e.bad) ? begin : done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *wire, *hold;
    float32x4_t plus, minus;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    const uint64_t word = terse_word(d->wire + i / 8), held = d->hold ? terse_word(d->hold + i / 8) : 0;
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        const float32x4_t before = vld1q_f32(d->sum + i + 4 * k);
        const float32x4_t after = vaddq_f32(before, vbslq_f32(terse_unpacked(word, k), d->plus, d->minus));
        vst1q_f32(d->sum + i + 4 * k, d->hold ? vbslq_f32(terse_unpacked(held, k), before, after) : after);
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    decoding d = {sum + begin, wire + begin / 8, options->hold ? options->hold + begin / 8 : NULL, vdupq_n_f32(options->scale), vdupq_n_f32(-options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_sign_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_sign_neon = {
    .name = "sign", .implementation = "neon", .takes = TERSE_SIGN_TAKES,
    .wire_bytes = terse_sign_wire_bytes, .encode = encode, .decode_add = decode_add,
};
