// How kernels walk one long array: in rounds of 64 elements, four pages at a time. Internal to the kernels, no part of the ABI.
//
// A processor prefetches within a page only, and waits for the next page's address translation when it gets there. With four
// pages in flight the wait hides. Sapphire Rapids, 64 Mi floats in 4 KiB pages, one thread, against walking in order: theta keep
// +- scale (one array) takes a fifth less time, momentum + sign (two arrays) a tenth, a Lion step (three) the same.
#ifndef TERSE_WALK_H
#define TERSE_WALK_H
#include <stddef.h>
#include <stdint.h>

enum {
    TERSE_ROUND = 64,         // elements: 8 bytes of signs, 256 bytes of floats
    TERSE_WALK_GROUP = 4096,  // elements of the four pages
};

// Calls round(context, i) once for every whole round of n elements, i its first element; returns the first element behind them.
// Always inlined: the context lives in registers.
static inline __attribute__((always_inline)) size_t terse_walk(size_t n, void (*round)(void *context, size_t i), void *context) {
    enum { PAGES = 4, PAGE = TERSE_WALK_GROUP / PAGES };
    size_t i = 0;
    for (; i + TERSE_WALK_GROUP <= n; i += TERSE_WALK_GROUP)
        for (size_t at = 0; at < PAGE; at += TERSE_ROUND)
            for (size_t page = 0; page < PAGES; page++) round(context, i + page * PAGE + at);
    for (; i + TERSE_ROUND <= n; i += TERSE_ROUND) round(context, i);
    return i;
}

// Asks for the 64 floats from x on, which need not be there. A round that asks for those of one group further hides what waiting is
// left: 64 Mi floats to l1's levels take 25 ms, and without it 31 (AVX-512) or 45 (AVX2).
// Always inlined: gcc drops calls of a function that does nothing else.
static inline __attribute__((always_inline)) void terse_ask_ahead(const float *x) {
#pragma GCC unroll 4
    for (size_t line = 0; line < TERSE_ROUND; line += 16) __builtin_prefetch(x + line);
}

// The same for `bytes` of the wire, where a round takes whole lines of it: a line that is written is fetched first, too.
static inline __attribute__((always_inline)) void terse_ask_ahead_on_wire(const uint8_t *wire, size_t bytes) {
#pragma GCC unroll 4
    for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(wire + line);
}

#define TERSE_ROUND_FUNCTION static inline __attribute__((always_inline)) void

#endif
