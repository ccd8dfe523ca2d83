// top-k in the words of terse/vector.h, which a file includes before this one. It defines TOP_K_F16, the halves of its
// processor.
#include "../f16/f16.h"
#include "../sign/sign.h"
#include "terse/walk.h"
#include "top_k.h"

// They have 31 bits, so they compare as signed numbers do.
static inline ints magnitudes(const float *x) { return (ints)LOAD(x) & TERSE_MAGNITUDE; }

typedef struct counting {
    const float *x;
    top_k_sight *sight;
    ints below_low, below_end, beyond, most;
} counting;

TERSE_ROUND_FUNCTION count_round(void *context, size_t i) {
    counting *c = context;
    terse_prefetch(c->x + i + TERSE_WALK_GROUP);
    mask seen[VECTORS];
    EACH_VECTOR {
        const ints magnitude = magnitudes(c->x + i + LANES * k);
        const mask beyond = INTS_ABOVE(magnitude, c->below_end);
        c->most = MOST_INTS(c->most, magnitude);
        c->beyond = COUNT(beyond, c->beyond);
        seen[k] = BUT_NOT(INTS_ABOVE(magnitude, c->below_low), beyond);
    }
    for (uint64_t in = WORD(seen); in; in &= in - 1)
        top_k_count_one(c->sight, terse_magnitude_bits(c->x + i + __builtin_ctzll(in)));
}

static int count(top_k_sight *sight, const float *x, size_t begin, size_t end) {
    counting c = {x + begin,     sight,        SPLAT_INTS((int)sight->low - 1), SPLAT_INTS((int)sight->end - 1),
                  SPLAT_INTS(0), SPLAT_INTS(0)};
    const size_t done = begin + terse_walk(end - begin, count_round, &c);
    for (int lane = 0; lane < LANES; lane++) sight->beyond += (uint32_t)c.beyond[lane];
    const int finite = LARGEST_INT(c.most) < TERSE_INFINITE;
    return top_k_scalar_kernel.count(sight, x, done, end) && finite;
}

static inline __attribute__((always_inline)) uint64_t above(const float *x, ints below) {
    mask larger[VECTORS];
    EACH_VECTOR larger[k] = INTS_ABOVE(magnitudes(x + LANES * k), below);
    return WORD(larger);
}

static void choose(top_k_choice *choice, size_t begin, size_t end) {
    size_t i = begin;
    for (; i + TERSE_ROUND <= end && choice->left; i += TERSE_ROUND) {
        terse_prefetch(choice->x + i + TERSE_WALK_GROUP / 4);
        // When all ties are taken, elements that equal `least` are no longer chosen.
        uint64_t chosen = above(choice->x + i, SPLAT_INTS((int)choice->least - (choice->ties != 0)));
        for (; chosen; chosen &= chosen - 1) top_k_choose_one(choice, i + (size_t)__builtin_ctzll(chosen));
    }
    top_k_scalar_kernel.choose(choice, i, end);
}

typedef struct copying {
    ints below, most;
} copying;

static inline __attribute__((always_inline)) uint64_t copy_round(void *context, const float *x) {
    copying *c = context;
    terse_prefetch(x + TERSE_WALK_GROUP);
    EACH_VECTOR c->most = MOST_INTS(c->most, magnitudes(x + LANES * k));
    return above(x, c->below);
}

static void copy(top_k_segment *to, const float *x, size_t n, uint32_t least) {
    copying c = {SPLAT_INTS((int)least - 1), SPLAT_INTS((int)to->most)};
    top_k_copy_by_rounds(to, x, n, least, copy_round, &c);
    const uint32_t most = (uint32_t)LARGEST_INT(c.most);
    to->most = most > to->most ? most : to->most;
}

static const top_k_kernel kernel = {count, choose, copy, &TOP_K_F16, &TERSE_NAMED(terse_sign)};

TOP_K_CODEC(TERSE_NAMED(terse_top_k), TERSE_IMPLEMENTATION, kernel)
