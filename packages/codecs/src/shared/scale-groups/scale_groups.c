#include "scale_groups.h"

#include <stdatomic.h>

#include "terse/parallel.h"

enum { LARGE = 1 << 19 };  // elements: enough for two threads

typedef struct walk {
    terse_measure_region *measure;
    const void *by;
    uint8_t *scales;
    const float *x;
    size_t n;
    const terse_codec_options *options;
    atomic_size_t refused;
} walk;

static void measure(walk *w, size_t r) {
    const size_t begin = terse_region_begin(r, w->n, w->options), end = terse_region_begin(r + 1, w->n, w->options);
    float scale;
    const size_t accepted = w->measure(w->by, w->x, begin, end, w->options, &scale);
    if (accepted == end) return terse_set_scale(w->scales, r, scale);
    size_t before = atomic_load(&w->refused);
    while (accepted < before && !atomic_compare_exchange_weak(&w->refused, &before, accepted)) {}
}

static int is_large(const walk *w, size_t r) {
    return terse_region_begin(r + 1, w->n, w->options) - terse_region_begin(r, w->n, w->options) >= LARGE;
}

// The regions that begin in the part; in the last part those of nothing at the end, too.
static void walk_part(void *context, size_t begin, size_t end) {
    walk *w = context;
    const size_t regions = terse_region_count(w->n, w->options), block = w->options->block;
    for (size_t r = block ? (begin + block - 1) / block : 0; r < regions; r++) {
        const size_t at = terse_region_begin(r, w->n, w->options);
        if (at >= end && end < w->n) break;
        if (at >= begin && !is_large(w, r)) measure(w, r);
    }
}

size_t terse_measure_regions(terse_measure_region *by_region, const void *by, uint8_t *scales, const float *x, size_t n, const terse_codec_options *o) {
    walk w = {by_region, by, scales, x, n, o, n};
    terse_parallel(n, 1, walk_part, &w);
    if (o->block && o->block < LARGE) return atomic_load(&w.refused);
    const size_t regions = terse_region_count(n, o);
    for (size_t r = 0; r < regions; r++)
        if (is_large(&w, r)) measure(&w, r);
    return atomic_load(&w.refused);
}
