#include "scale_groups.h"

#include <stdatomic.h>

#include "terse/parallel.h"

enum { LARGE = 1 << 19 };  // elements: enough for two threads

typedef struct walk {
    terse_compute_scale *of_group;
    const void *by;
    size_t each;
    uint8_t *scales;
    const float *x;
    size_t n;
    const terse_codec_options *options;
    atomic_size_t refused;
} walk;

static void compute(walk *w, size_t r) {
    const size_t begin = terse_scale_group_begin(r, w->n, w->options),
                 end = terse_scale_group_begin(r + 1, w->n, w->options);
    float scale[TERSE_MOST_SCALES];
    const size_t accepted = w->of_group(w->by, w->x, begin, end, w->options, scale);
    if (accepted == end) {
        memcpy(w->scales + 4 * w->each * r, scale, 4 * w->each);
        return;
    }
    size_t before = atomic_load(&w->refused);
    while (accepted < before && !atomic_compare_exchange_weak(&w->refused, &before, accepted)) {
    }
}

static int is_large(const walk *w, size_t r) {
    return terse_scale_group_begin(r + 1, w->n, w->options) - terse_scale_group_begin(r, w->n, w->options) >= LARGE;
}

// The scale groups that begin in [begin, end); the last part also gets the empty ones at the end.
static void walk_part(void *context, size_t begin, size_t end) {
    walk *w = context;
    const size_t groups = terse_scale_group_count(w->n, w->options), block = w->options->block;
    for (size_t r = block ? (begin + block - 1) / block : 0; r < groups; r++) {
        const size_t at = terse_scale_group_begin(r, w->n, w->options);
        if (at >= end && end < w->n) break;
        if (at >= begin && !is_large(w, r)) compute(w, r);
    }
}

size_t terse_compute_scales(terse_compute_scale *of_group, const void *by, size_t each, uint8_t *scales, const float *x,
                            size_t n, const terse_codec_options *o) {
    walk w = {of_group, by, each, scales, x, n, o, n};
    terse_parallel(n, 1, walk_part, &w);
    if (o->block && o->block < LARGE) return atomic_load(&w.refused);
    const size_t groups = terse_scale_group_count(n, o);
    for (size_t r = 0; r < groups; r++)
        if (is_large(&w, r)) compute(&w, r);
    return atomic_load(&w.refused);
}
