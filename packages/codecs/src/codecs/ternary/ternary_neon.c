#include "../../shared/signs/signs_neon.h"
#include "ternary.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *plus, *nonzero;
    const float *x;
    uint32x4_t bad;  // the OR of all x - x: +0 for every finite x, NaN otherwise
} encoding;

// 64 floats -> 8 bytes of each plane.
TERSE_ROUND_FUNCTION encode_round(void *context, size_t i) {
    encoding *e = context;
    uint32x4_t plus[16], nonzero[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        const float32x4_t x = vld1q_f32(e->x + i + 4 * k);
        e->bad = vorrq_u32(e->bad, vreinterpretq_u32_f32(vsubq_f32(x, x)));
        plus[k] = vcgtzq_f32(x);
        nonzero[k] = vmvnq_u32(vceqzq_f32(x));
    }
    vst1_u8(e->plus + i / 8, terse_packed(plus));
    vst1_u8(e->nonzero + i / 8, terse_packed(nonzero));
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8, x + begin, vdupq_n_u32(0)};
    const size_t done = begin + terse_walk(end - begin, encode_round, &e);
    // A number is not finite: the scalar kernel finds the first one.
    return terse_ternary_scalar.encode(wire, x, n, options, vmaxvq_u32(e.bad) ? begin : done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *plus, *nonzero;
    float32x4_t scale;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    const uint64_t plus = terse_word(d->plus + i / 8), nonzero = terse_word(d->nonzero + i / 8);
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        const float32x4_t sign = vbslq_f32(terse_unpacked(plus, k), vdupq_n_f32(1), vdupq_n_f32(-1));
        const float32x4_t value = vbslq_f32(terse_unpacked(nonzero, k), sign, vdupq_n_f32(0));
        vst1q_f32(d->sum + i + 4 * k, vaddq_f32(vld1q_f32(d->sum + i + 4 * k), vmulq_f32(d->scale, value)));
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    decoding d = {sum + begin, wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8, vdupq_n_f32(options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_ternary_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_ternary_neon = {
    .name = "ternary", .implementation = "neon",
    .wire_bytes = terse_ternary_wire_bytes, .encode = encode, .decode_add = decode_add,
};
