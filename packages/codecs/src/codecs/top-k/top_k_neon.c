#include "../../shared/signs/signs_neon.h"
#include "terse/walk.h"
#include "top_k.h"

static inline uint32x4_t magnitudes(const float *x) {
    return vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x)), vdupq_n_u32(TERSE_MAGNITUDE));
}

static inline __attribute__((always_inline)) uint64_t word_of(const uint32x4_t lanes[16]) { return vget_lane_u64(vreinterpret_u64_u8(terse_packed(lanes)), 0); }

typedef struct counting {
    const float *x;
    top_k_sight *sight;
    uint32x4_t low, end, beyond, most;
} counting;

TERSE_ROUND_FUNCTION count_round(void *context, size_t i) {
    counting *c = context;
    uint32x4_t lanes[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        const uint32x4_t magnitude = magnitudes(c->x + i + 4 * k), beyond = vcgeq_u32(magnitude, c->end);
        c->most = vmaxq_u32(c->most, magnitude);
        c->beyond = vsubq_u32(c->beyond, beyond);
        lanes[k] = vbicq_u32(vcgeq_u32(magnitude, c->low), beyond);
    }
    for (uint64_t in = word_of(lanes); in; in &= in - 1) top_k_count_one(c->sight, terse_magnitude_bits(c->x + i + __builtin_ctzll(in)));
}

static int count(top_k_sight *sight, const float *x, size_t begin, size_t end) {
    counting c = {x + begin, sight, vdupq_n_u32(sight->low), vdupq_n_u32(sight->end), vdupq_n_u32(0), vdupq_n_u32(0)};
    const size_t done = begin + terse_walk(end - begin, count_round, &c);
    sight->beyond += vaddlvq_u32(c.beyond);
    const int finite = vmaxvq_u32(c.most) < TERSE_INFINITE;
    return top_k_scalar_kernel.count(sight, x, done, end) && finite;
}

static void choose(top_k_choice *choice, size_t begin, size_t end) {
    size_t i = begin;
    for (; i + TERSE_ROUND <= end && choice->left; i += TERSE_ROUND) {
        // When all ties are taken, elements that equal `least` are no longer chosen.
        const uint32x4_t least = vdupq_n_u32(choice->least + (choice->ties == 0));
        uint32x4_t lanes[16];
#pragma GCC unroll 16
        for (int k = 0; k < 16; k++) lanes[k] = vcgeq_u32(magnitudes(choice->x + i + 4 * k), least);
        for (uint64_t chosen = word_of(lanes); chosen; chosen &= chosen - 1) top_k_choose_one(choice, i + (size_t)__builtin_ctzll(chosen));
    }
    top_k_scalar_kernel.choose(choice, i, end);
}

typedef struct copying {
    uint32x4_t least, most;
} copying;

static inline __attribute__((always_inline)) uint64_t copy_round(void *context, const float *x) {
    copying *c = context;
    uint32x4_t lanes[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; k++) {
        const uint32x4_t magnitude = magnitudes(x + 4 * k);
        c->most = vmaxq_u32(c->most, magnitude);
        lanes[k] = vcgeq_u32(magnitude, c->least);
    }
    return word_of(lanes);
}

static void copy(top_k_segment *to, const float *x, size_t n, uint32_t least) {
    copying c = {vdupq_n_u32(least), vdupq_n_u32(to->most)};
    top_k_copy_by_rounds(to, x, n, least, copy_round, &c);
    const uint32_t most = vmaxvq_u32(c.most);
    to->most = most > to->most ? most : to->most;
}

static const top_k_kernel kernel = {count, choose, copy};

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)begin, (void)end;
    return top_k_encode(&kernel, wire, x, n, options->k);
}

const terse_codec terse_top_k_neon = {
    .name = "top-k", .implementation = "neon", .takes = TOP_K_TAKES, .whole = 1,
    .check = top_k_check, .wire_bytes = top_k_wire_bytes, .encode = encode, .decode_add = top_k_decode_add,
};
