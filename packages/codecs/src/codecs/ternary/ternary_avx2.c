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
    __m256 bad;  // the OR of all x - x: +0 for every finite x, NaN otherwise
} encoding;

// 64 floats -> 8 bytes of each plane.
TERSE_ROUND_FUNCTION encode_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + 2 * TERSE_PAGE);  // measured: one page, and four, take a twentieth to a tenth longer
    const __m256 zero = _mm256_setzero_ps();
    uint64_t plus = 0, nonzero = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256 x = _mm256_loadu_ps(e->x + i + 8 * k);
        e->bad = _mm256_or_ps(e->bad, _mm256_sub_ps(x, x));
        plus |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, zero, _CMP_GT_OQ)) << (8 * k);
        nonzero |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x, zero, _CMP_NEQ_OQ)) << (8 * k);
    }
    memcpy(e->plus + i / 8, &plus, 8);
    memcpy(e->nonzero + i / 8, &nonzero, 8);
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8, x + begin, _mm256_setzero_ps()};
    const size_t done = begin + terse_walk(end - begin, encode_round, &e);
    const __m256i bad = _mm256_castps_si256(e.bad);
    // A number is not finite: the scalar kernel finds the first one.
    return terse_ternary_scalar.encode(wire, x, n, options, _mm256_testz_si256(bad, bad) ? done : begin, end);
}

// Bits 8 k .. 8 k + 7 of a word, each at the top of its lane.
static inline __m256i spread(uint64_t word, int k) {
    const __m256i to_top = _mm256_sub_epi32(_mm256_set1_epi32(31 - 8 * (k % 4)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_sllv_epi32(_mm256_set1_epi32((int)(word >> 32 * (k / 4))), to_top);
}

typedef struct decoding {
    float *sum;
    const uint8_t *plus, *nonzero;
    __m256 minus_scale;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    const uint64_t plus = load_word(d->plus + i / 8), nonzero = load_word(d->nonzero + i / 8);
    const __m256 top = _mm256_set1_ps(-0.0f);
    const __m256 nothing = _mm256_and_ps(_mm256_xor_ps(d->minus_scale, top), top);  // scale times 0: a zero with scale's sign
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256 signed_scale = _mm256_xor_ps(d->minus_scale, _mm256_and_ps(_mm256_castsi256_ps(spread(plus, k)), top));
        const __m256 value = _mm256_blendv_ps(nothing, signed_scale, _mm256_castsi256_ps(spread(nonzero, k)));
        _mm256_storeu_ps(d->sum + i + 8 * k, _mm256_add_ps(_mm256_loadu_ps(d->sum + i + 8 * k), value));
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    decoding d = {sum + begin, wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8, _mm256_set1_ps(-options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_ternary_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_ternary_avx2 = {
    .name = "ternary", .implementation = "avx2",
    .wire_bytes = terse_ternary_wire_bytes, .encode = encode, .decode_add = decode_add,
};
