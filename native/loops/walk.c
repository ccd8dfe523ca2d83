// Measures which order of pages is faster here, and which prefetching. The first long walks alternate between both
// ways, stretch by stretch, and count which of two neighbouring stretches took less time: on the caller's own arrays,
// so that nothing has to be allocated or read for it, and on so many pairs that another process that slows some of them
// down does not matter. A pair in which pages were touched for the first time, as those of a new optimizer state are,
// does not count.
#define _GNU_SOURCE
#include "terse/walk.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD RUSAGE_SELF
#endif

enum {
    LONG = 1 << 20,  // elements: shorter arrays lie in a cache
    PAIRS = 31,      // of stretches: 2 Mi elements in all
};

enum { UNKNOWN, FIRST, SECOND };

typedef struct question {
    atomic_uint answer;             // which of two ways is faster; UNKNOWN: being measured
    atomic_uint pairs, for_second;  // measured by all walks; how many of them the second way won
} question;

static question order;      // in order; four pages in turn
static question fetching;   // ahead; nothing
static question next_page;  // as fetching says; the next page

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long page_faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt + usage.ru_majflt : 0;
}

// A pair of stretches, of which the second took so long.
static void count(question *q, const terse_walk_trial *trial, uint64_t took) {
    if (took < trial->first) atomic_fetch_add(&q->for_second, 1);
    if (atomic_fetch_add(&q->pairs, 1) + 1 == PAIRS) atomic_store(&q->answer, atomic_load(&q->for_second) > PAIRS / 2 ? SECOND : FIRST);
}

// The way of the next stretch, FIRST or SECOND; measures the one before.
static unsigned ask(question *q, terse_walk_trial *trial) {
    const unsigned known = atomic_load_explicit(&q->answer, memory_order_relaxed);
    if (known) return known;
    if (trial->question != q) *trial = (terse_walk_trial){.question = q};
    const uint64_t now = nanoseconds(), took = now - trial->began;
    const unsigned stretch = trial->stretches++;  // even ones go the first way
    if (stretch % 2 == 1) trial->first = took;
    else {
        const long faults = page_faults(), before = trial->faults;
        trial->faults = faults;
        if (stretch && faults == before) count(q, trial, took);
    }
    trial->began = nanoseconds();
    return stretch % 2 ? SECOND : FIRST;
}

size_t terse_walk_pages(terse_walk_trial *trial, size_t n) {
    const unsigned known = atomic_load_explicit(&order.answer, memory_order_relaxed);
    if (!known && n < LONG) return 1;
    return ask(&order, trial) == SECOND ? 4 : 1;
}

size_t terse_walk_way(terse_walk_trial *trial, size_t n, int *fetches) {
    const unsigned known = atomic_load_explicit(&order.answer, memory_order_relaxed);
    *fetches = TERSE_FETCH_AHEAD;
    if (!known) return terse_walk_pages(trial, n);
    *fetches = terse_walk_fetching_next(trial, n);
    return known == SECOND ? 4 : 1;
}

int terse_walk_fetching_next(terse_walk_trial *trial, size_t n) {
    const unsigned known = atomic_load_explicit(&fetching.answer, memory_order_relaxed);
    if (!known && n < LONG) return TERSE_FETCH_AHEAD;
    const int fetches = (known ? known : ask(&fetching, trial)) == FIRST ? TERSE_FETCH_AHEAD : TERSE_FETCH_NOTHING;
    if (!known || (n < LONG && !atomic_load_explicit(&next_page.answer, memory_order_relaxed))) return fetches;
    return ask(&next_page, trial) == SECOND ? TERSE_FETCH_NEXT_PAGE : fetches;
}

static void answer(question *q, int with) {
    atomic_store(&q->pairs, 0);
    atomic_store(&q->for_second, 0);
    atomic_store(&q->answer, with);
}

void terse_walk_use(unsigned pages, int fetches) {
    answer(&order, pages == 0 ? UNKNOWN : pages == 4 ? SECOND : FIRST);
    answer(&fetching, pages == 0 ? UNKNOWN : fetches == TERSE_FETCH_AHEAD ? FIRST : SECOND);
    answer(&next_page, pages == 0 ? UNKNOWN : fetches == TERSE_FETCH_NEXT_PAGE ? SECOND : FIRST);
}

unsigned terse_walk_order(void) {
    const unsigned known = atomic_load(&order.answer);
    return known == SECOND ? 4 : known;
}

int terse_walk_fetches(void) {
    const unsigned ahead = atomic_load(&fetching.answer), page = atomic_load(&next_page.answer);
    if (!ahead || !page) return -1;
    return page == SECOND ? TERSE_FETCH_NEXT_PAGE : ahead == FIRST ? TERSE_FETCH_AHEAD : TERSE_FETCH_NOTHING;
}
