#include <immintrin.h>

#include "terse/walk.h"
#include "top_k.h"

static inline __m512i magnitudes(const float *x) { return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(TERSE_MAGNITUDE)); }

// Magnitudes have 31 bits, so they compare as signed numbers do.
typedef struct counting {
    const float *x;
    top_k_sight *sight;
    __m512i low, end, beyond, most;
} counting;

TERSE_ROUND_FUNCTION count_round(void *context, size_t i) {
    counting *c = context;
    uint64_t in = 0;
    terse_prefetch(c->x + i + TERSE_WALK_GROUP);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512i magnitude = magnitudes(c->x + i + 16 * k);
        const __mmask16 seen = _mm512_cmpge_epi32_mask(magnitude, c->low), beyond = _mm512_cmpge_epi32_mask(magnitude, c->end);
        c->most = _mm512_max_epi32(c->most, magnitude);
        c->beyond = _mm512_mask_sub_epi32(c->beyond, beyond, c->beyond, _mm512_set1_epi32(-1));
        in |= (uint64_t)(seen & (__mmask16)~beyond) << (16 * k);
    }
    for (; in; in &= in - 1) top_k_count_one(c->sight, terse_magnitude_bits(c->x + i + __builtin_ctzll(in)));
}

static int count(top_k_sight *sight, const float *x, size_t begin, size_t end) {
    counting c = {x + begin, sight, _mm512_set1_epi32((int)sight->low), _mm512_set1_epi32((int)sight->end), _mm512_setzero_si512(), _mm512_setzero_si512()};
    const size_t done = begin + terse_walk(end - begin, count_round, &c);
    uint32_t beyond[16];
    _mm512_storeu_si512(beyond, c.beyond);
    for (int lane = 0; lane < 16; lane++) sight->beyond += beyond[lane];
    const int finite = _mm512_reduce_max_epi32(c.most) < TERSE_INFINITE;
    return top_k_scalar_kernel.count(sight, x, done, end) && finite;
}

static void choose(top_k_choice *choice, size_t begin, size_t end) {
    size_t i = begin;
    for (; i + TERSE_ROUND <= end && choice->left; i += TERSE_ROUND) {
        // When all ties are taken, elements that equal `least` are no longer chosen.
        const __m512i below = _mm512_set1_epi32((int)choice->least - (choice->ties != 0));
        uint64_t chosen = 0;
        terse_prefetch(choice->x + i + TERSE_WALK_GROUP / 4);
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) chosen |= (uint64_t)_mm512_cmpgt_epi32_mask(magnitudes(choice->x + i + 16 * k), below) << (16 * k);
        for (; chosen; chosen &= chosen - 1) top_k_choose_one(choice, i + (size_t)__builtin_ctzll(chosen));
    }
    top_k_scalar_kernel.choose(choice, i, end);
}

typedef struct copying {
    __m512i least, most;
} copying;

static inline __attribute__((always_inline)) uint64_t copy_round(void *context, const float *x) {
    copying *c = context;
    uint64_t copied = 0;
    terse_prefetch(x + TERSE_WALK_GROUP);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m512i magnitude = magnitudes(x + 16 * k);
        c->most = _mm512_max_epi32(c->most, magnitude);
        copied |= (uint64_t)_mm512_cmpge_epi32_mask(magnitude, c->least) << (16 * k);
    }
    return copied;
}

static void copy(top_k_segment *to, const float *x, size_t n, uint32_t least) {
    copying c = {_mm512_set1_epi32((int)least), _mm512_set1_epi32((int)to->most)};
    top_k_copy_by_rounds(to, x, n, least, copy_round, &c);
    const uint32_t most = (uint32_t)_mm512_reduce_max_epi32(c.most);
    to->most = most > to->most ? most : to->most;
}

static const top_k_kernel kernel = {count, choose, copy};

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)begin, (void)end;
    return top_k_encode(&kernel, wire, x, n, options->k);
}

const terse_codec terse_top_k_avx512 = {
    .name = "top-k", .implementation = "avx512", .takes = TOP_K_TAKES, .whole = 1,
    .check = top_k_check, .wire_bytes = top_k_wire_bytes, .encode = encode, .decode_add = top_k_decode_add,
};
