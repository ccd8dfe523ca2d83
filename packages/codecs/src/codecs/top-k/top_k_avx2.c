#include <immintrin.h>

#include "terse/walk.h"
#include "top_k.h"

static inline __m256i magnitudes(const float *x) {
    return _mm256_and_si256(_mm256_loadu_si256((const __m256i *)x), _mm256_set1_epi32(TERSE_MAGNITUDE));
}

static inline uint64_t lanes_of(__m256i mask) { return (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(mask)); }

// Magnitudes have 31 bits, so they compare as signed numbers do.
typedef struct counting {
    const float *x;
    top_k_sight *sight;
    __m256i below_low, below_end, beyond, most;
} counting;

TERSE_ROUND_FUNCTION count_round(void *context, size_t i) {
    counting *c = context;
    uint64_t in = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256i magnitude = magnitudes(c->x + i + 8 * k);
        const __m256i beyond = _mm256_cmpgt_epi32(magnitude, c->below_end);
        c->most = _mm256_max_epi32(c->most, magnitude);
        c->beyond = _mm256_sub_epi32(c->beyond, beyond);
        in |= lanes_of(_mm256_andnot_si256(beyond, _mm256_cmpgt_epi32(magnitude, c->below_low))) << (8 * k);
    }
    for (; in; in &= in - 1) top_k_count_one(c->sight, terse_magnitude_bits(c->x + i + __builtin_ctzll(in)));
}

static int count(top_k_sight *sight, const float *x, size_t begin, size_t end) {
    counting c = {x + begin, sight, _mm256_set1_epi32((int)sight->low - 1), _mm256_set1_epi32((int)sight->end - 1), _mm256_setzero_si256(), _mm256_setzero_si256()};
    const size_t done = begin + terse_walk(end - begin, count_round, &c);
    uint32_t beyond[8];
    _mm256_storeu_si256((__m256i *)beyond, c.beyond);
    for (int lane = 0; lane < 8; lane++) sight->beyond += beyond[lane];
    const int finite = !lanes_of(_mm256_cmpgt_epi32(c.most, _mm256_set1_epi32(TERSE_INFINITE - 1)));
    return top_k_scalar_kernel.count(sight, x, done, end) && finite;
}

static void choose(top_k_choice *choice, size_t begin, size_t end) {
    size_t i = begin;
    for (; i + TERSE_ROUND <= end && choice->left; i += TERSE_ROUND) {
        // When all ties are taken, elements that equal `least` are no longer chosen.
        const __m256i below = _mm256_set1_epi32((int)choice->least - (choice->ties != 0));
        uint64_t chosen = 0;
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) chosen |= lanes_of(_mm256_cmpgt_epi32(magnitudes(choice->x + i + 8 * k), below)) << (8 * k);
        for (; chosen; chosen &= chosen - 1) top_k_choose_one(choice, i + (size_t)__builtin_ctzll(chosen));
    }
    top_k_scalar_kernel.choose(choice, i, end);
}

typedef struct copying {
    __m256i below, most;
} copying;

static inline __attribute__((always_inline)) uint64_t copy_round(void *context, const float *x) {
    copying *c = context;
    uint64_t copied = 0;
    terse_prefetch(x + TERSE_WALK_GROUP);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {
        const __m256i magnitude = magnitudes(x + 8 * k);
        c->most = _mm256_max_epi32(c->most, magnitude);
        copied |= lanes_of(_mm256_cmpgt_epi32(magnitude, c->below)) << (8 * k);
    }
    return copied;
}

static void copy(top_k_segment *to, const float *x, size_t n, uint32_t least) {
    copying c = {_mm256_set1_epi32((int)least - 1), _mm256_set1_epi32((int)to->most)};
    top_k_copy_by_rounds(to, x, n, least, copy_round, &c);
    uint32_t of_lanes[8];
    _mm256_storeu_si256((__m256i *)of_lanes, c.most);
    for (int lane = 0; lane < 8; lane++) to->most = of_lanes[lane] > to->most ? of_lanes[lane] : to->most;
}

static const top_k_kernel kernel = {count, choose, copy};

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)begin, (void)end;
    return top_k_encode(&kernel, wire, x, n, options->k);
}

const terse_codec terse_top_k_avx2 = {
    .name = "top-k", .implementation = "avx2", .takes = TOP_K_TAKES, .whole = 1,
    .check = top_k_check, .wire_bytes = top_k_wire_bytes, .encode = encode, .decode_add = top_k_decode_add,
};
