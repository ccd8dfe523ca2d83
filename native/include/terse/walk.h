// How kernels walk one long array: in rounds of 64 elements, four pages at a time. Internal to the kernels, no part of the ABI.
//
// A processor prefetches within a page only, and waits for the next page's address translation when it gets there. With four
// pages in flight the wait hides. Sapphire Rapids, 64 Mi floats in 4 KiB pages, one thread, against walking in order: theta keep
// +- scale (one array) takes a fifth less time, momentum + sign (two arrays) a tenth, a Lion step (three) the same.
#ifndef TERSE_WALK_H
#define TERSE_WALK_H
#include <stddef.h>

enum { TERSE_ROUND = 64 };  // elements: 8 bytes of signs, 256 bytes of floats

// Calls round(context, i) once for every whole round of n elements, i its first element; returns the first element behind them.
// Always inlined: the context lives in registers.
static inline __attribute__((always_inline)) size_t terse_walk(size_t n, void (*round)(void *context, size_t i), void *context) {
    enum { PAGES = 4, PAGE = 1024, GROUP = PAGES * PAGE };
    size_t i = 0;
    for (; i + GROUP <= n; i += GROUP)
        for (size_t at = 0; at < PAGE; at += TERSE_ROUND)
            for (size_t page = 0; page < PAGES; page++) round(context, i + page * PAGE + at);
    for (; i + TERSE_ROUND <= n; i += TERSE_ROUND) round(context, i);
    return i;
}

#define TERSE_ROUND_FUNCTION static inline __attribute__((always_inline)) void

#endif
