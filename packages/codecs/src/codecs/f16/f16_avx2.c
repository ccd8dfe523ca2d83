#include <immintrin.h>

#include "f16.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *wire;
    const float *x;
    __m256i most;  // the largest magnitude, as bits
} encoding;

static inline __attribute__((always_inline)) __m128i rounded(encoding *e, size_t i) {
    const __m256 x = _mm256_loadu_ps(e->x + i);
    e->most = _mm256_max_epi32(e->most, _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff)));
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

// 64 floats -> 128 bytes.
TERSE_ROUND_FUNCTION encode_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    terse_prefetch_wire(e->wire + 2 * (i + TERSE_WALK_GROUP), 2 * TERSE_ROUND);
#pragma GCC unroll 8
    for (size_t k = 0; k < 64; k += 8) _mm_storeu_si128((__m128i *)(e->wire + 2 * (i + k)), rounded(e, i + k));
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    encoding e = {wire + 2 * begin, x + begin, _mm256_setzero_si256()};
    const size_t done = begin + terse_walk(end - begin, encode_round, &e);
    const __m256i refused = _mm256_cmpgt_epi32(e.most, _mm256_set1_epi32(TERSE_F16_LARGEST));
    // A number that does not fit: the scalar code finds the first one.
    return terse_f16_scalar.encode(wire, x, n, options, _mm256_testz_si256(refused, refused) ? done : begin, end);
}

typedef struct checking {
    const uint8_t *wire;
    __m256i infinite;
} checking;

TERSE_ROUND_FUNCTION check_round(void *context, size_t i) {
    checking *c = context;
    terse_prefetch_wire(c->wire + 2 * (i + TERSE_WALK_GROUP), 2 * TERSE_ROUND);
    const __m256i exponent = _mm256_set1_epi16(TERSE_F16_INFINITE);
#pragma GCC unroll 4
    for (size_t k = 0; k < 64; k += 16) {
        const __m256i halves = _mm256_loadu_si256((const __m256i *)(c->wire + 2 * (i + k)));
        c->infinite = _mm256_or_si256(c->infinite, _mm256_cmpeq_epi16(_mm256_and_si256(halves, exponent), exponent));
    }
}

static int is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    checking c = {wire + 2 * begin, _mm256_setzero_si256()};
    const size_t done = begin + terse_walk(end - begin, check_round, &c);
    return _mm256_testz_si256(c.infinite, c.infinite) && terse_f16_scalar.is_good(wire, n, options, done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *wire;
    __m256 scale;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    terse_prefetch_wire(d->wire + 2 * (i + TERSE_WALK_GROUP), 2 * TERSE_ROUND);
#pragma GCC unroll 8
    for (size_t k = 0; k < 64; k += 8) {
        const __m256 halves = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(d->wire + 2 * (i + k))));
        const __m256 value = _mm256_mul_ps(d->scale, halves);
        _mm256_storeu_ps(d->sum + i + k, _mm256_add_ps(_mm256_loadu_ps(d->sum + i + k), value));
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    decoding d = {sum + begin, wire + 2 * begin, _mm256_set1_ps(options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_f16_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec terse_f16_avx2 = {
    .name = "f16", .implementation = "avx2",
    .wire_bytes = terse_f16_wire_bytes, .encode = encode, .is_good = is_good, .decode_add = decode_add,
};
