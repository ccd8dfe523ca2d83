#include <immintrin.h>
#include <string.h>

#include "sign.h"
#include "terse/walk.h"

static inline uint64_t load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

typedef struct encoding {
    uint8_t *wire;
    const float *x;
    const uint8_t *hold;
    __mmask16 bad;
} encoding;

enum { NAN_OR_INFINITE = 0x01 | 0x08 | 0x10 | 0x80 };  // vfpclassps: quiet NaN, +infinity, -infinity, signaling NaN

// 64 floats -> 8 bytes.
static inline __attribute__((always_inline)) void encode_round(encoding *e, size_t i, const int zero_is_plus) {
    uint64_t word = 0;
    terse_prefetch(e->x + i + 2 * TERSE_PAGE);  // measured: one page, and four, take a twentieth to a tenth longer
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512 x = _mm512_loadu_ps(e->x + i + 16 * k);
        e->bad = _kor_mask16(e->bad, _mm512_fpclass_ps_mask(x, NAN_OR_INFINITE));
        const __m512 zero = _mm512_setzero_ps();
        const __mmask16 plus = zero_is_plus ? _mm512_cmp_ps_mask(x, zero, _CMP_GE_OQ) : _mm512_cmp_ps_mask(x, zero, _CMP_GT_OQ);
        word |= (uint64_t)plus << (16 * k);
    }
    if (e->hold) word &= ~load_word(e->hold + i / 8);
    memcpy(e->wire + i / 8, &word, 8);
}

TERSE_ROUND_FUNCTION encode_zero_plus(void *context, size_t i) { encode_round(context, i, 1); }
TERSE_ROUND_FUNCTION encode_zero_minus(void *context, size_t i) { encode_round(context, i, 0); }

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + begin / 8, x + begin, options->hold ? options->hold + begin / 8 : NULL, 0};
    const size_t done = begin + (options->zero == TERSE_ZERO_PLUS ? terse_walk(end - begin, encode_zero_plus, &e) : terse_walk(end - begin, encode_zero_minus, &e));
    // A number is not finite: the scalar kernel finds the first one.
    return terse_sign_scalar.encode(wire, x, n, options, e.bad ? begin : done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *wire, *hold;
    __m512 scale, minus_scale;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    const uint64_t word = load_word(d->wire + i / 8), spoken = d->hold ? ~load_word(d->hold + i / 8) : ~(uint64_t)0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512 before = _mm512_loadu_ps(d->sum + i + 16 * k);
        const __m512 value = _mm512_mask_blend_ps((__mmask16)(word >> 16 * k), d->minus_scale, d->scale);
        const __m512 after = d->hold ? _mm512_mask_add_ps(before, (__mmask16)(spoken >> 16 * k), before, value) : _mm512_add_ps(before, value);
        _mm512_storeu_ps(d->sum + i + 16 * k, after);
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    decoding d = {sum + begin, wire + begin / 8, options->hold ? options->hold + begin / 8 : NULL, _mm512_set1_ps(options->scale), _mm512_set1_ps(-options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_sign_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_sign_avx512 = {
    .name = "sign", .implementation = "avx512", .takes = TERSE_SIGN_TAKES,
    .wire_bytes = terse_sign_wire_bytes, .encode = encode, .decode_add = decode_add,
};
