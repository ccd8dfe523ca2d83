// Measures which order of pages is faster here. The first long walks alternate between both orders, stretch by stretch, and count which
// of two neighbouring stretches took less time: on the caller's own arrays, so that nothing has to be allocated or read for it, and on
// so many pairs that another process that slows some of them down does not matter.
#include "terse/walk.h"

#include <stdatomic.h>
#include <time.h>

enum {
    LONG = 1 << 20,  // elements: shorter arrays lie in a cache
    PAIRS = 31,      // of stretches: 2 Mi elements in all
};

static atomic_uint order;               // 1 or 4; 0: being measured
static atomic_uint pairs, for_four;     // measured by all walks; how many of them four pages won

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

size_t terse_walk_pages(terse_walk_trial *trial, size_t n) {
    const unsigned known = atomic_load_explicit(&order, memory_order_relaxed);
    if (known) return known;
    if (n < LONG) return 1;
    const uint64_t now = nanoseconds(), took = now - trial->began;
    const unsigned stretch = trial->stretches++;  // even ones are walked in order
    trial->began = now;
    if (stretch % 2 == 1) trial->in_order = took;
    else if (stretch) {
        if (took < trial->in_order) atomic_fetch_add(&for_four, 1);
        if (atomic_fetch_add(&pairs, 1) + 1 == PAIRS) atomic_store(&order, atomic_load(&for_four) > PAIRS / 2 ? 4 : 1);
    }
    return stretch % 2 ? 4 : 1;
}

void terse_walk_use(unsigned pages) {
    atomic_store(&pairs, 0);
    atomic_store(&for_four, 0);
    atomic_store(&order, pages);
}

unsigned terse_walk_order(void) { return atomic_load(&order); }
