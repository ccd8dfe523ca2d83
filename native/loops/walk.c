// Measures which order of pages is faster here, and which prefetching. The first long walks alternate between both
// ways, stretch by stretch, and count which of two neighbouring stretches took less time: on the caller's own arrays,
// so that nothing has to be allocated or read for it, and on so many pairs that another process that slows some of them
// down does not matter. A pair in which pages were touched for the first time, as those of a new optimizer state are,
// does not count. Every kernel file measures for itself: four arrays and two want different ways.
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

// What tests have asked for; UNKNOWN: what is measured.
static atomic_uint forced_order, forced_fetching, forced_next_page;

static atomic_uint measured;  // kernel files that know all that they ask

static unsigned known_of(const terse_walk_question *q, const atomic_uint *forced) {
    const unsigned asked = atomic_load_explicit(forced, memory_order_relaxed);
    return asked ? asked : __atomic_load_n(&q->answer, __ATOMIC_RELAXED);
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long page_faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt + usage.ru_majflt : 0;
}

// A pair of stretches, of which the second took so long. Returns 1 where it is the last pair.
static int count(terse_walk_question *q, const terse_walk_trial *trial, uint64_t took) {
    if (took < trial->first) __atomic_fetch_add(&q->for_second, 1, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&q->pairs, 1, __ATOMIC_RELAXED) != PAIRS) return 0;
    const unsigned second = __atomic_load_n(&q->for_second, __ATOMIC_RELAXED);
    __atomic_store_n(&q->answer, second > PAIRS / 2 ? SECOND : FIRST, __ATOMIC_RELAXED);
    return 1;
}

// The way of the next stretch, FIRST or SECOND; measures the one before. *last: set where that was the last pair.
static unsigned ask(terse_walk_question *q, terse_walk_trial *trial, int *last) {
    if (trial->question != q) *trial = (terse_walk_trial){.question = q};
    const uint64_t now = nanoseconds(), took = now - trial->began;
    const unsigned stretch = trial->stretches++;  // even ones go the first way
    if (stretch % 2 == 1) trial->first = took;
    else {
        const long faults = page_faults(), before = trial->faults;
        trial->faults = faults;
        if (stretch && faults == before) *last = count(q, trial, took);
    }
    trial->began = nanoseconds();
    return stretch % 2 ? SECOND : FIRST;
}

size_t terse_walk_pages(terse_walk_answers *answers, terse_walk_trial *trial, size_t n) {
    const unsigned known = known_of(&answers->order, &forced_order);
    int last;
    if (!known && n < LONG) return 1;
    return (known ? known : ask(&answers->order, trial, &last)) == SECOND ? 4 : 1;
}

size_t terse_walk_way(terse_walk_answers *answers, terse_walk_trial *trial, size_t n, int *fetches) {
    const unsigned known = known_of(&answers->order, &forced_order);
    *fetches = TERSE_FETCH_AHEAD;
    if (!known) return terse_walk_pages(answers, trial, n);
    *fetches = terse_walk_fetching_next(answers, trial, n);
    return known == SECOND ? 4 : 1;
}

int terse_walk_fetching_next(terse_walk_answers *answers, terse_walk_trial *trial, size_t n) {
    const unsigned fetching = known_of(&answers->fetching, &forced_fetching);
    const unsigned next_page = known_of(&answers->next_page, &forced_next_page);
    int last = 0;
    if (!fetching && n < LONG) return TERSE_FETCH_AHEAD;
    const int ahead = (fetching ? fetching : ask(&answers->fetching, trial, &last)) == FIRST;
    const int fetches = ahead ? TERSE_FETCH_AHEAD : TERSE_FETCH_NOTHING;
    if (!fetching || (!next_page && n < LONG)) return fetches;
    const unsigned way = next_page ? next_page : ask(&answers->next_page, trial, &last);
    if (last) atomic_fetch_add(&measured, 1);
    return way == SECOND ? TERSE_FETCH_NEXT_PAGE : fetches;
}

void terse_walk_use(unsigned pages, int fetches) {
    atomic_store(&forced_order, pages == 0 ? UNKNOWN : pages == 4 ? SECOND : FIRST);
    atomic_store(&forced_fetching, pages == 0 ? UNKNOWN : fetches == TERSE_FETCH_AHEAD ? FIRST : SECOND);
    atomic_store(&forced_next_page, pages == 0 ? UNKNOWN : fetches == TERSE_FETCH_NEXT_PAGE ? SECOND : FIRST);
}

unsigned terse_walk_measured(void) { return atomic_load(&measured); }
