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
    __m256 bad;  // the OR of all x - x: +0 for every finite x, NaN otherwise
} encoding;

// 64 floats -> 8 bytes.
static inline __attribute__((always_inline)) void encode_round(encoding *e, size_t i, const int zero_is_plus) {
    uint64_t word = 0;
    terse_prefetch(e->x + i + 2 * TERSE_PAGE);  // measured: one page, and four, take a twentieth to a tenth longer
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256 x = _mm256_loadu_ps(e->x + i + 8 * k);
        e->bad = _mm256_or_ps(e->bad, _mm256_sub_ps(x, x));
        const __m256 zero = _mm256_setzero_ps(), plus = zero_is_plus ? _mm256_cmp_ps(x, zero, _CMP_GE_OQ) : _mm256_cmp_ps(x, zero, _CMP_GT_OQ);
        word |= (uint64_t)(unsigned)_mm256_movemask_ps(plus) << (8 * k);
    }
    if (e->hold) word &= ~load_word(e->hold + i / 8);
    memcpy(e->wire + i / 8, &word, 8);
}

TERSE_ROUND_FUNCTION encode_zero_plus(void *context, size_t i) { encode_round(context, i, 1); }
TERSE_ROUND_FUNCTION encode_zero_minus(void *context, size_t i) { encode_round(context, i, 0); }

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + begin / 8, x + begin, options->hold ? options->hold + begin / 8 : NULL, _mm256_setzero_ps()};
    const size_t done = begin + (options->zero == TERSE_ZERO_PLUS ? terse_walk(end - begin, encode_zero_plus, &e) : terse_walk(end - begin, encode_zero_minus, &e));
    const __m256i bad = _mm256_castps_si256(e.bad);
    // A number is not finite: the scalar kernel finds the first one.
    return terse_sign_scalar.encode(wire, x, n, options, _mm256_testz_si256(bad, bad) ? done : begin, end);
}

// Bits 8 k .. 8 k + 7 of a word, each at the top of its lane: there it is a float's sign.
static inline __m256 spread(uint64_t word, int k) {
    const __m256i to_top = _mm256_sub_epi32(_mm256_set1_epi32(31 - 8 * (k % 4)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_castsi256_ps(_mm256_sllv_epi32(_mm256_set1_epi32((int)(word >> 32 * (k / 4))), to_top));
}

typedef struct decoding {
    float *sum;
    const uint8_t *wire, *hold;
    __m256 minus_scale;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    const uint64_t word = load_word(d->wire + i / 8), held = d->hold ? load_word(d->hold + i / 8) : 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256 value = _mm256_xor_ps(d->minus_scale, _mm256_and_ps(spread(word, k), _mm256_set1_ps(-0.0f)));
        const __m256 before = _mm256_loadu_ps(d->sum + i + 8 * k), after = _mm256_add_ps(before, value);
        _mm256_storeu_ps(d->sum + i + 8 * k, d->hold ? _mm256_blendv_ps(after, before, spread(held, k)) : after);
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    decoding d = {sum + begin, wire + begin / 8, options->hold ? options->hold + begin / 8 : NULL, _mm256_set1_ps(-options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_sign_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_sign_avx2 = {
    .name = "sign", .implementation = "avx2", .takes = TERSE_SIGN_TAKES,
    .wire_bytes = terse_sign_wire_bytes, .encode = encode, .decode_add = decode_add,
};
