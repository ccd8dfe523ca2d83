// The wires of 1-bit Adam's and 1-bit LAMB's averaged momentum (Tang et al. 2021, Algorithm 1), each in one pass that
// computes what is to be sent, measures it and writes its bits. All floats are one scale group, and an exact 0 is plus.
// What a wire could not say is known when its pass has ended, so the next pass subtracts what has been sent. A file
// that includes this one defines, for 64 elements of which none is masked, and returns their bits:
//
//   uint64_t momentum_block(const passing *p, double partial[16], float *x, const float *m, const float *g)
//                                             x = fma(add, g, fma(keep, m, rest of x)),  partial[k % 16] += x[k]^2
//   uint64_t sum_block(const passing *p, double partial[16], float *x, size_t byte)
//                                             x = rest of x +- scales[r] for each wire r, whose bits begin at `byte`
#ifndef TERSE_MOMENTUM_H
#define TERSE_MOMENTUM_H
#include <math.h>
#include <string.h>

#include "terse/parallel.h"
#include "terse/walk.h"

enum { BLOCK = 64, CHUNKS = 512, ALONE_AHEAD = 2048 };  // ALONE_AHEAD: floats, of the only array

// Bits i .. i + 63 of a mask of n bits, 0 beyond them.
static inline uint64_t masked_at(const uint8_t *hold, size_t i, size_t n) {
    uint64_t word = 0;
    if (hold) memcpy(&word, hold + i / 8, n - i < BLOCK ? (n - i + 7) / 8 : BLOCK / 8);
    return n - i < BLOCK ? word & (((uint64_t)1 << (n - i)) - 1) : word;
}

// One element that may be masked. A masked NaN or infinity gives NaN.
static inline uint64_t measure_one(double partial[16], float x, size_t k, int is_masked) {
    partial[k % 16] += (double)x * (is_masked ? 0.0 : (double)x);
    return (uint64_t)(!is_masked && x >= 0.0f) << k;
}

static inline void write_bits(const passing *p, size_t i, uint64_t plus) {
    memcpy(p->bits + i / 8, &plus, p->n - i < BLOCK ? (p->n - i + 7) / 8 : BLOCK / 8);
}

typedef struct part {
    const passing *of;
    size_t begin;
    double partial[16];
} part;

TERSE_ROUND_FUNCTION momentum_stretch(void *context, size_t from, size_t to, int fetches) {
    part *const own = context;
    const passing *const p = own->of;
    const size_t n = p->n, end = own->begin + to;
    for (size_t i = own->begin + from; i < end; i += BLOCK) {
        float *const x = p->error + i;
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        const uint64_t masked = masked_at(p->hold, i, n);
        uint64_t plus = 0;
        if (count == BLOCK && !masked) {
            terse_fetch(x, TERSE_NEAR, fetches);
            terse_fetch(p->m + i, TERSE_NEAR, fetches);
            terse_fetch(p->g + i, TERSE_NEAR, fetches);
            plus = momentum_block(p, own->partial, x, p->m + i, p->g + i);
        } else
            for (size_t k = 0; k < count; k++) {
                const int is_masked = (int)(masked >> k & 1);
                x[k] = terse_fma(p->add, p->g[i + k],
                                 terse_fma(p->keep, p->m[i + k], is_masked ? x[k] : rest_of(x[k], p->sent)));
                plus |= measure_one(own->partial, x[k], k, is_masked);
            }
        write_bits(p, i, plus);
    }
    if (end % TERSE_REDUCTION_CHUNK && end < n) return;
    p->of_chunks[(end - 1) / TERSE_REDUCTION_CHUNK % CHUNKS] = terse_reductions_fold(own->partial);
    memset(own->partial, 0, sizeof own->partial);
}

static void momentum_part(void *context, size_t begin, size_t end) {
    const passing *const p = context;
    part own = {p, p->first + begin, {0}};
    terse_walk_in_order(end - begin, momentum_stretch, &own);
}

static double sum_chunk(const passing *p, size_t begin, size_t end) {
    double partial[16] = {0};
    for (size_t i = begin; i < end; i += BLOCK) {
        float *const x = p->error + i;
        const size_t count = end - i < BLOCK ? end - i : BLOCK;
        const uint64_t masked = masked_at(p->hold, i, p->n);
        uint64_t plus = 0;
        if (count == BLOCK && !masked) {
            terse_prefetch(x + ALONE_AHEAD);
            plus = sum_block(p, partial, x, i / 8);
        } else
            for (size_t k = 0; k < count; k++) {
                const int is_masked = (int)(masked >> k & 1);
                if (!is_masked) x[k] = rest_of(x[k], p->sent);
                for (size_t r = 0; r < p->count && !is_masked; r++) {
                    const float scale = scale_of(p, r);
                    x[k] += bits_of(p, r)[(i + k) / 8] >> (i + k) % 8 & 1 ? scale : -scale;
                }
                plus |= measure_one(partial, x[k], k, is_masked);
            }
        write_bits(p, i, plus);
    }
    return terse_reductions_fold(partial);
}

static void sum_part(void *context, size_t begin, size_t end) {
    const passing *const p = context;
    for (size_t i = p->first + begin, stop = p->first + end; i < stop; i += TERSE_REDUCTION_CHUNK)
        p->of_chunks[i / TERSE_REDUCTION_CHUNK % CHUNKS] = sum_chunk(
            p, i, stop - i < TERSE_REDUCTION_CHUNK ? stop : i + TERSE_REDUCTION_CHUNK);
}

// Runs a pass on all threads, and completes its wire. Returns n, or the index of the first element that is not finite.
static size_t run_pass(passing *p, uint8_t *wire, void (*part)(void *context, size_t begin, size_t end)) {
    double of_chunks[CHUNKS], squares = 0;
    p->bits = wire + 4;
    p->of_chunks = of_chunks;
    for (p->first = 0; p->first < p->n; p->first += (size_t)CHUNKS * TERSE_REDUCTION_CHUNK) {
        const size_t left = p->n - p->first, most = (size_t)CHUNKS * TERSE_REDUCTION_CHUNK,
                     length = left < most ? left : most;
        terse_parallel(length, TERSE_REDUCTION_CHUNK, part, p);
        for (size_t c = 0; c * TERSE_REDUCTION_CHUNK < length; c++) squares += of_chunks[c];
    }
    if (squares - squares != 0.0) return terse_first_not_finite(p->error, p->n);
    size_t spoken = p->n;
    for (size_t i = 0; p->hold && i < p->n; i += BLOCK)
        spoken -= (size_t)__builtin_popcountll(masked_at(p->hold, i, p->n));
    const float scale = spoken ? (float)sqrt(squares / (double)spoken) : 0.0f;
    terse_set_scale(wire, 0, scale);
    if (scale == 0.0f) memset(p->bits, 0, (p->n + 7) / 8);
    return p->n;
}

static size_t encode_momentum(uint8_t *wire, const float *m, const float *g, float *error, size_t n,
                              const terse_momentum *weights, const terse_codec_options *o) {
    passing p = {.error = error,
                 .m = m,
                 .g = g,
                 .hold = o->hold,
                 .n = n,
                 .keep = weights->keep,
                 .add = weights->add,
                 .sent = weights->sent};
    return run_pass(&p, wire, momentum_part);
}

static size_t encode_sum(uint8_t *wire, const uint8_t *const *wires, size_t count, float *error, size_t n, float sent,
                         const terse_codec_options *o) {
    passing p = {
        .error = error, .wires = wires, .count = count, .hold = o->hold, .n = n, .sent = sent, .scale = o->scale};
    return run_pass(&p, wire, sum_part);
}

#endif
