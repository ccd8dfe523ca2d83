// Whether two pieces of memory share a byte; such calls are refused.
#ifndef TERSE_OVERLAP_H
#define TERSE_OVERLAP_H
#include <stddef.h>
#include <stdint.h>

static inline int terse_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

#endif
