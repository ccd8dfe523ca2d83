// What the passes of momentum.h have in common: the operands of one pass.
#ifndef TERSE_PASSING_H
#define TERSE_PASSING_H
#include "scaled_sign.h"
#include "terse/fma.h"

typedef struct passing {
    float *error;
    const float *m, *g;           // of a momentum
    const uint8_t *const *wires;  // of a sum
    size_t count;
    const uint8_t *hold;
    size_t n;
    float keep, add, sent, scale;
    uint8_t *bits;
    size_t first;       // of the chunks that are summed at once
    double *of_chunks;  // sums of squares
} passing;

static inline float rest_of(float x, float sent) { return x + (x >= 0.0f ? -sent : sent); }
static inline float scale_of(const passing *p, size_t r) { return p->scale * terse_scale_at(p->wires[r], 0); }
static inline const uint8_t *bits_of(const passing *p, size_t r) { return p->wires[r] + 4; }

#endif
