// The order in which kernels walk long arrays. Internal to the kernels, not part of the ABI.
//
// A walk goes in rounds of 64 elements, through one page of 4 KiB after the other, or through four pages in turn. A
// processor's own prefetching ends where a page ends; with four pages in flight it waits less there, but four streams
// at once can be worse for it elsewhere. So no order is best everywhere, and the first long walks of a kernel file
// measure which one is faster for its arrays (walk.c). The results do not depend on the order. 64 Mi floats, 4 KiB
// pages, one thread, time of four pages in turn / time in order:
//
//                       one array              two arrays           three arrays
//                       theta keep +- scale    momentum and sign    a Lion step
//   Sapphire Rapids     0.8                    0.9                  1.0             neither with terse_prefetch
//   Zen 5               2.0                    1.7                  1.5             both with terse_prefetch
//
// A kernel of one array prefetches a group ahead. One of two or three prefetches only a few lines ahead (TERSE_NEAR):
// arrays of one model often lie a page apart, modulo a large power of two, and what is prefetched a page ahead in one
// then evicts what the next one is about to use: a Lion step on Zen 5, 4 KiB pages 42 ms with it and 36 without, 2 MiB
// pages 36 and 27.
//
// What a walk prefetches is measured too, where it can go without. A processor starts anew in each page, because the
// next one may lie anywhere in memory. A walk that prefetches the first lines of the next page saves that wait. Where
// pages are large it only costs. Zen 4, one thread, milliseconds for 48 Mi parameters, one page after the other:
//
//                                       nothing   a few lines ahead   the next page
//   4 KiB pages  a Lion step            25.7      30.3                20.7
//                momentum and sign      15.8      24.4                13.4
//                theta keep +- scale    10.2      12.9                8.3
//   2 MiB pages  a Lion step            19.4      21.6                20.5
//                momentum and sign      13.0      15.0                13.7
//                theta keep +- scale    7.3       8.0                 7.5
//
// Shares of the streaming speed without and with a few lines ahead:
//
//                       a Lion step     momentum and sign    theta keep +- scale    AdamW
//   Xeon, 260 MB of L3  0.91, 1.03      0.88, 0.99
//   Zen 4, 4 KiB pages  1.07, 0.87      1.04, 0.82           0.98, 0.83             1.13, 0.93
//   Zen 4, 2 MiB pages  1.05, 0.88      1.07, 0.85           0.89, 0.85             1.03, 0.85
#ifndef TERSE_WALK_H
#define TERSE_WALK_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

enum {
    TERSE_ROUND = 64,              // elements: 8 bytes of signs, 256 bytes of floats
    TERSE_PAGE = 1024,             // elements: 4 KiB of floats
    TERSE_WALK_GROUP = 4 * 1024,   // elements of four pages
    TERSE_WALK_STRETCH = 1 << 15,  // elements that are walked in one order
    TERSE_NEAR = 256,              // elements
};

// What a walk prefetches.
enum { TERSE_FETCH_NOTHING, TERSE_FETCH_AHEAD, TERSE_FETCH_NEXT_PAGE };

// Which of two ways is faster: known, or what has been counted so far.
typedef struct terse_walk_question {
    unsigned answer, pairs, for_second;
} terse_walk_question;

typedef struct terse_walk_answers {
    terse_walk_question order;      // in order; four pages in turn
    terse_walk_question fetching;   // ahead; nothing
    terse_walk_question next_page;  // as fetching says; the next page
} terse_walk_answers;

// The answers of the file that includes this header: an AdamW step of four arrays asks for itself, not a Lion step of
// three.
static __attribute__((unused)) terse_walk_answers terse_walk_here;

// What a walk of n elements has measured; zeros at the beginning.
typedef struct terse_walk_trial {
    unsigned stretches;
    uint64_t began;        // nanoseconds: when the last stretch began
    uint64_t first;        // nanoseconds that the last one took that went the first way
    long faults;           // of this thread, before the last pair of stretches
    const void *question;  // what is being measured
} terse_walk_trial;

// How many pages the next stretch of a walk of n elements takes in turn: 1 or 4.
size_t terse_walk_pages(terse_walk_answers *answers, terse_walk_trial *trial, size_t n);

// The same, and what it prefetches. The order is measured first, while it prefetches ahead.
size_t terse_walk_way(terse_walk_answers *answers, terse_walk_trial *trial, size_t n, int *fetches);

// What the next stretch of a walk in order prefetches.
int terse_walk_fetching_next(terse_walk_answers *answers, terse_walk_trial *trial, size_t n);

// All walks of the process take this many pages in turn, 1 or 4, and prefetch this; 0 pages: what is measured. For
// tests.
void terse_walk_use(unsigned pages, int fetches);

// How many kernel files know what to prefetch. For tests.
unsigned terse_walk_measured(void);

// Calls round(context, i) once for every whole round of n elements; i is the index of its first element. Returns the
// index of the first element after the whole rounds. Always inlined, so that the context stays in registers.
static inline __attribute__((always_inline)) size_t terse_walk(size_t n, void (*round)(void *context, size_t i),
                                                               void *context) {
    terse_walk_trial trial = {0};
    size_t i = 0;
    while (n - i >= TERSE_WALK_GROUP) {
        const size_t page = TERSE_WALK_GROUP / terse_walk_pages(&terse_walk_here, &trial, n),
                     end = n - i < TERSE_WALK_STRETCH ? n : i + TERSE_WALK_STRETCH;
        for (; end - i >= TERSE_WALK_GROUP; i += TERSE_WALK_GROUP)
            for (size_t at = 0; at < page; at += TERSE_ROUND)
                for (size_t from = i + at; from < i + TERSE_WALK_GROUP; from += page) round(context, from);
    }
    for (; i + TERSE_ROUND <= n; i += TERSE_ROUND) round(context, i);
    return i;
}

// The same for rounds that can prefetch: round(context, i, fetches), where `fetches` is known at compile time.
static inline __attribute__((always_inline)) size_t
terse_walk_fetching(size_t n, void (*round)(void *context, size_t i, int fetches), void *context) {
    terse_walk_trial trial = {0};
    size_t i = 0;
    while (n - i >= TERSE_WALK_GROUP) {
        int fetches;
        const size_t page = TERSE_WALK_GROUP / terse_walk_way(&terse_walk_here, &trial, n, &fetches),
                     end = n - i < TERSE_WALK_STRETCH ? n : i + TERSE_WALK_STRETCH;
        for (; end - i >= TERSE_WALK_GROUP; i += TERSE_WALK_GROUP)
            for (size_t at = 0; at < page; at += TERSE_ROUND)
                for (size_t from = i + at; from < i + TERSE_WALK_GROUP; from += page)
                    if (fetches == TERSE_FETCH_NEXT_PAGE) round(context, from, TERSE_FETCH_NEXT_PAGE);
                    else if (fetches == TERSE_FETCH_AHEAD) round(context, from, TERSE_FETCH_AHEAD);
                    else round(context, from, TERSE_FETCH_NOTHING);
    }
    for (; i + TERSE_ROUND <= n; i += TERSE_ROUND) round(context, i, TERSE_FETCH_NOTHING);
    return i;
}

// Calls stretch(context, from, to, fetches) for one stretch of n elements after the other: for sums, whose order is
// part of the result.
static inline __attribute__((always_inline)) void terse_walk_in_order(
    size_t n, void (*stretch)(void *context, size_t from, size_t to, int fetches), void *context) {
    terse_walk_trial trial = {0};
    for (size_t from = 0; from < n; from += TERSE_WALK_STRETCH) {
        const size_t to = n - from < TERSE_WALK_STRETCH ? n : from + TERSE_WALK_STRETCH;
        const int fetches = terse_walk_fetching_next(&terse_walk_here, &trial, n);
        if (fetches == TERSE_FETCH_NEXT_PAGE) stretch(context, from, to, TERSE_FETCH_NEXT_PAGE);
        else if (fetches == TERSE_FETCH_AHEAD) stretch(context, from, to, TERSE_FETCH_AHEAD);
        else stretch(context, from, to, TERSE_FETCH_NOTHING);
    }
}

// Prefetches the 64 floats at x; x may be past the end of the array. A round prefetches its own floats of the next
// group, whatever the order: that hides most of the wait at the end of a page.
// Always inlined: gcc removes calls of a function that only prefetches.
static inline __attribute__((always_inline)) void terse_prefetch(const float *x) {
#pragma GCC unroll 4
    for (size_t line = 0; line < TERSE_ROUND; line += 16) __builtin_prefetch(x + line);
}

// What a round at x prefetches of this array: floats that are `ahead`, or the first lines of the next page. It does the
// latter in the middle of a page.
static inline __attribute__((always_inline)) void terse_fetch(const float *x, size_t ahead, const int fetches) {
    if (fetches == TERSE_FETCH_AHEAD) terse_prefetch(x + ahead);
    const uintptr_t at = (uintptr_t)x, page = TERSE_PAGE * sizeof(float), round = TERSE_ROUND * sizeof(float);
    if (fetches != TERSE_FETCH_NEXT_PAGE || at % page / round != page / round / 2) return;
    terse_prefetch((const float *)(at / page * page + page));
}

// The same for `bytes` of the wire, where a round uses whole cache lines of it. A line that is written is read from
// memory first too.
static inline __attribute__((always_inline)) void terse_prefetch_wire(const uint8_t *wire, size_t bytes) {
#pragma GCC unroll 4
    for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(wire + line);
}

#define TERSE_ROUND_FUNCTION static inline __attribute__((always_inline)) void

#ifdef __cplusplus
}
#endif
#endif
