#include <immintrin.h>
#include <string.h>

#include "ternary.h"
#include "terse/walk.h"

static inline uint64_t load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

typedef struct encoding {
    uint8_t *plus, *nonzero;
    const float *x;
    __mmask16 bad;
} encoding;

enum { NAN_OR_INFINITE = 0x01 | 0x08 | 0x10 | 0x80 };  // vfpclassps: quiet NaN, +infinity, -infinity, signaling NaN

// 64 floats -> 8 bytes of each plane.
TERSE_ROUND_FUNCTION encode_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + 2 * TERSE_PAGE);  // measured: one page, and four, take a twentieth to a tenth longer
    uint64_t plus = 0, nonzero = 0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512 x = _mm512_loadu_ps(e->x + i + 16 * k);
        e->bad = _kor_mask16(e->bad, _mm512_fpclass_ps_mask(x, NAN_OR_INFINITE));
        plus |= (uint64_t)_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ) << (16 * k);
        nonzero |= (uint64_t)_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_OQ) << (16 * k);
    }
    memcpy(e->plus + i / 8, &plus, 8);
    memcpy(e->nonzero + i / 8, &nonzero, 8);
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8, x + begin, 0};
    const size_t done = begin + terse_walk(end - begin, encode_round, &e);
    // A number is not finite: the scalar kernel finds the first one.
    return terse_ternary_scalar.encode(wire, x, n, options, e.bad ? begin : done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *plus, *nonzero;
    __m512 scale, minus_scale, nothing;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    const uint64_t plus = load_word(d->plus + i / 8), nonzero = load_word(d->nonzero + i / 8);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512 signed_scale = _mm512_mask_blend_ps((__mmask16)(plus >> 16 * k), d->minus_scale, d->scale);
        const __m512 value = _mm512_mask_blend_ps((__mmask16)(nonzero >> 16 * k), d->nothing, signed_scale);
        _mm512_storeu_ps(d->sum + i + 16 * k, _mm512_add_ps(_mm512_loadu_ps(d->sum + i + 16 * k), value));
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    const float scale = options->scale;
    decoding d = {sum + begin, wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8, _mm512_set1_ps(scale), _mm512_set1_ps(-scale), _mm512_set1_ps(scale * 0.0f)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_ternary_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_ternary_avx512 = {
    .name = "ternary", .implementation = "avx512",
    .wire_bytes = terse_ternary_wire_bytes, .encode = encode, .decode_add = decode_add,
};
