// The halves of Lion Cub's step on threads. Elements do not depend on each other; parts begin at whole groups of
// terse/walk.h, and so at whole bytes of signs.
#include <stdatomic.h>

#include "lion.h"
#include "terse/parallel.h"

typedef struct call {
    const terse_lion *lion;
    uint8_t *signs;       // of the vote
    const uint8_t *wire;  // of the outcome
    float *c, *m, *theta;
    const float *g;
    const terse_lion_options *options;
    float keep, scale;
    _Atomic size_t accepted;
} call;

static void vote_part(void *context, size_t begin, size_t end) {
    call *of = context;
    const size_t good = begin +
                        of->lion->vote(of->signs + begin / 8, of->m + begin, of->g + begin, end - begin, of->options);
    size_t least = atomic_load(&of->accepted);
    while (good < end && good < least && !atomic_compare_exchange_weak(&of->accepted, &least, good)) {
    }
}

size_t terse_lion_vote(const terse_lion *lion, uint8_t *wire, float *m, const float *g, size_t n,
                       const terse_lion_options *options) {
    call of = {.lion = lion, .signs = wire, .m = m, .g = g, .options = options};
    atomic_init(&of.accepted, n);
    terse_parallel(n, TERSE_WALK_GROUP, vote_part, &of);
    return atomic_load(&of.accepted);
}

static void mix_part(void *context, size_t begin, size_t end) {
    const call *of = context;
    of->lion->mix(of->c + begin, of->m + begin, of->g + begin, end - begin, of->options);
}

void terse_lion_mix(const terse_lion *lion, float *c, float *m, const float *g, size_t n,
                    const terse_lion_options *options) {
    call of = {.lion = lion, .c = c, .m = m, .g = g, .options = options};
    terse_parallel(n, TERSE_WALK_GROUP, mix_part, &of);
}

static void apply_part(void *context, size_t begin, size_t end) {
    const call *of = context;
    of->lion->apply_signs(of->theta + begin, of->wire + begin / 8, end - begin, of->keep, of->scale);
}

void terse_lion_apply_signs(const terse_lion *lion, float *theta, const uint8_t *wire, size_t n, float keep,
                            float scale) {
    call of = {.lion = lion, .theta = theta, .wire = wire, .keep = keep, .scale = scale};
    terse_parallel(n, TERSE_WALK_GROUP, apply_part, &of);
}
