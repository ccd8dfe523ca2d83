#include <arm_neon.h>

#include "f16.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *wire;
    const float *x;
    uint32x4_t most;  // the largest magnitude, as bits
} encoding;

static inline __attribute__((always_inline)) uint16x4_t rounded(encoding *e, size_t i) {
    const float32x4_t x = vld1q_f32(e->x + i);
    e->most = vmaxq_u32(e->most, vandq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x7fffffff)));
    return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

// 64 floats -> 128 bytes.
TERSE_ROUND_FUNCTION encode_round(void *context, size_t i) {
    encoding *e = context;
#pragma GCC unroll 8
    for (size_t k = 0; k < 64; k += 8)
        vst1q_u8(e->wire + 2 * (i + k), vreinterpretq_u8_u16(vcombine_u16(rounded(e, i + k), rounded(e, i + k + 4))));
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + 2 * begin, x + begin, vdupq_n_u32(0)};
    const size_t done = begin + terse_walk(end - begin, encode_round, &e);
    // A number that does not fit: the scalar code finds the first one.
    return terse_f16_scalar.encode(wire, x, n, options, vmaxvq_u32(e.most) > TERSE_F16_LARGEST ? begin : done, end);
}

typedef struct checking {
    const uint8_t *wire;
    uint16x8_t infinite;
} checking;

TERSE_ROUND_FUNCTION check_round(void *context, size_t i) {
    checking *c = context;
    const uint16x8_t exponent = vdupq_n_u16(TERSE_F16_INFINITE);
#pragma GCC unroll 8
    for (size_t k = 0; k < 64; k += 8) {
        const uint16x8_t halves = vreinterpretq_u16_u8(vld1q_u8(c->wire + 2 * (i + k)));
        c->infinite = vorrq_u16(c->infinite, vceqq_u16(vandq_u16(halves, exponent), exponent));
    }
}

static int is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    checking c = {wire + 2 * begin, vdupq_n_u16(0)};
    const size_t done = begin + terse_walk(end - begin, check_round, &c);
    return !vmaxvq_u16(c.infinite) && terse_f16_scalar.is_good(wire, n, options, done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *wire;
    float32x4_t scale;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
#pragma GCC unroll 16
    for (size_t k = 0; k < 64; k += 4) {
        const float32x4_t value = vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(d->wire + 2 * (i + k))));
        vst1q_f32(d->sum + i + k, vaddq_f32(vld1q_f32(d->sum + i + k), vmulq_f32(d->scale, value)));
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    decoding d = {sum + begin, wire + 2 * begin, vdupq_n_f32(options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_f16_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_f16_neon = {
    .name = "f16", .implementation = "neon",
    .wire_bytes = terse_f16_wire_bytes, .encode = encode, .is_good = is_good, .decode_add = decode_add,
};
