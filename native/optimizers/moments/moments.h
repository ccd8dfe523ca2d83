// The kernels of terse/optimizers.h on Adam's moments, in loops that a compiler turns into vector instructions:
// moments.c, moments_avx2.c and moments_avx512.c compile them for different instructions, with the same bits. Each
// defines, for blocks of 64 elements:
//
//   void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus)
//                                                                    m[k] = if_plus where bit k is 1, else if_minus
#ifndef TERSE_MOMENTS_H
#define TERSE_MOMENTS_H
#include <string.h>

#include "element.h"
#include "terse/walk.h"

enum {
    BLOCK = 64,     // elements that are checked before any of them is stored; a word of signs
    PARTIALS = 16,  // partial sums
};

static double fold(double partial[PARTIALS]) {
    for (size_t width = PARTIALS / 2; width; width /= 2)
        for (size_t k = 0; k < width; k++) partial[k] += partial[k + width];
    return partial[0];
}

// Returns the first element that is not finite, and stores nothing then; else count, at most BLOCK.
static inline size_t accumulate_block(float *restrict m, float *restrict v, const float *restrict g, size_t count,
                                      moments_weights w) {
    float new_m[BLOCK], new_v[BLOCK];
    int bad = 0;
    for (size_t k = 0; k < count; k++) {
        const float scaled = g[k] * w.gradient;
        new_m[k] = next_m(w, m[k], scaled);
        new_v[k] = next_v(w, v[k], scaled);
        bad |= !is_real(new_m[k]) | !is_real(new_v[k]);
    }
    if (bad)
        for (size_t k = 0; k < count; k++)
            if (!is_real(new_m[k]) || !is_real(new_v[k])) return k;
    for (size_t k = 0; k < count; k++) m[k] = new_m[k];
    for (size_t k = 0; k < count; k++) v[k] = new_v[k];
    return count;
}

static size_t accumulate(float *restrict m, float *restrict v, const float *restrict g, size_t n,
                         const terse_moments_options *options) {
    const moments_weights w = moments_weights_of(options->beta1, options->beta2, options->gradient_scale);
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const size_t good = accumulate_block(m + i, v + i, g + i, BLOCK, w);
        if (good < BLOCK) return i + good;
    }
    return i + accumulate_block(m + i, v + i, g + i, n - i, w);
}

// The sums of theta^2 and of u^2.
typedef struct norms {
    double of_theta[PARTIALS], of_update[PARTIALS];
} norms;

static inline void add_squares(norms *s, const float *restrict theta, const float *restrict m, const float *restrict v,
                               size_t count, adam_form f) {
    for (size_t row = 0; row < count; row += PARTIALS) {
        const size_t width = count - row < PARTIALS ? count - row : PARTIALS;
        for (size_t k = 0; k < width; k++) {
            const float x = theta[row + k], u = update_of(f, x, m[row + k], v[row + k]);
            s->of_theta[k] += (double)x * x;
            s->of_update[k] += (double)u * u;
        }
    }
}

static void squares(const float *restrict theta, const float *restrict m, const float *restrict v, size_t n,
                    const terse_adam_update *update, double sums[2]) {
    const adam_form f = adam_form_of(update);
    norms s = {{0}, {0}};
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) add_squares(&s, theta + i, m + i, v + i, BLOCK, f);
    add_squares(&s, theta + i, m + i, v + i, n - i, f);
    sums[0] = fold(s.of_theta);
    sums[1] = fold(s.of_update);
}

static size_t accumulate_and_squares(const float *restrict theta, float *restrict m, float *restrict v,
                                     const float *restrict g, size_t n, const terse_moments_options *options,
                                     const terse_adam_update *update, double sums[2]) {
    const moments_weights w = moments_weights_of(options->beta1, options->beta2, options->gradient_scale);
    const adam_form f = adam_form_of(update);
    norms s = {{0}, {0}};
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const size_t good = accumulate_block(m + i, v + i, g + i, BLOCK, w);
        if (good < BLOCK) return i + good;
        add_squares(&s, theta + i, m + i, v + i, BLOCK, f);
    }
    const size_t good = accumulate_block(m + i, v + i, g + i, n - i, w);
    add_squares(&s, theta + i, m + i, v + i, n - i, f);
    sums[0] = fold(s.of_theta);
    sums[1] = fold(s.of_update);
    return i + good;
}

// Bits i .. i + 63 of a mask of n bits, 0 beyond them.
static inline uint64_t bits_at(const uint8_t *mask, size_t i, size_t n) {
    uint64_t word = 0;
    memcpy(&word, mask + i / 8, n - i < BLOCK ? (n - i + 7) / 8 : BLOCK / 8);
    return word;
}

// m = the packed momentum of count elements from element i of n on, at most BLOCK.
static inline void unpack(float *restrict m, const terse_packed_momentum *packed, size_t i, size_t count, size_t n) {
    const float if_plus = 0.0f + packed->scale, if_minus = 0.0f - packed->scale;  // +0 if the scale is 0
    const uint64_t plus = bits_at(packed->signs, i, n), held = packed->hold ? bits_at(packed->hold, i, n) : 0;
    if (count == BLOCK && !held) unpack_block(m, plus, if_plus, if_minus);
    else
        for (size_t k = 0; k < count; k++) m[k] = held >> k & 1 ? 0.0f : plus >> k & 1 ? if_plus : if_minus;
}

static inline void apply_block(float *restrict theta, const float *restrict m, const float *restrict v, size_t count,
                               adam_form f, float rate) {
    for (size_t k = 0; k < count; k++) theta[k] = theta[k] - rate * update_of(f, theta[k], m[k], v[k]);
}

typedef struct applying {
    float *theta, *m;
    const float *v;
    size_t n;
    adam_form form;
    float rate;
    const terse_packed_momentum *packed;
} applying;

TERSE_ROUND_FUNCTION apply_stretch(void *context, size_t from, size_t to, int fetches) {
    const applying *const a = context;
    float *restrict theta = a->theta, *restrict m = a->m;
    const float *restrict v = a->v;
    for (size_t i = from; i < to; i += BLOCK) {
        const size_t count = a->n - i < BLOCK ? a->n - i : BLOCK;
        float mean[BLOCK];
        terse_prefetch(m + i + TERSE_NEAR);  // it is written and not read: no processor fetches it by itself
        terse_fetch(theta + i, TERSE_NEAR, fetches);
        terse_fetch(v + i, TERSE_NEAR, fetches);
        unpack(mean, a->packed, i, count, a->n);
        if (count == BLOCK) apply_block(theta + i, mean, v + i, BLOCK, a->form, a->rate);
        else apply_block(theta + i, mean, v + i, count, a->form, a->rate);
        memcpy(m + i, mean, count * sizeof *m);
    }
}

static void apply(float *restrict theta, float *restrict m, const float *restrict v, size_t n,
                  const terse_adam_update *update, float rate, const terse_packed_momentum *packed) {
    const adam_form form = adam_form_of(update);
    if (!packed) return apply_block(theta, m, v, n, form, rate);
    applying a = {theta, m, v, n, form, rate, packed};
    terse_walk_in_order(n, apply_stretch, &a);
}

static inline void refresh_block(float most[PARTIALS], float *restrict fresh, const float *restrict frozen,
                                 const float *restrict m, const float *restrict last, size_t count, refresh_weights w,
                                 int root) {
    for (size_t row = 0; row < count; row += PARTIALS) {
        const size_t width = count - row < PARTIALS ? count - row : PARTIALS;
        for (size_t k = 0; k < width; k++) {
            const float next = refreshed(w, fresh[row + k], m[row + k], last[row + k]),
                        ratio = ratio_of(w, root, frozen[row + k], next);
            fresh[row + k] = next;
            most[k] = ratio > most[k] ? ratio : most[k];
        }
    }
}

static inline float refresh_as(float *restrict fresh, const float *restrict frozen, float *restrict m,
                               const float *restrict last, size_t n, refresh_weights w,
                               const terse_packed_momentum *packed, const int root) {
    float most[PARTIALS] = {0};
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        float mean[BLOCK];
        if (packed) unpack(mean, packed, i, count, n);
        const float *const now = packed ? mean : m + i, *const before = packed ? m + i : last + i;
        if (count == BLOCK) refresh_block(most, fresh + i, frozen + i, now, before, BLOCK, w, root);
        else refresh_block(most, fresh + i, frozen + i, now, before, count, w, root);
        if (packed) memcpy(m + i, mean, count * sizeof *m);
    }
    for (size_t k = 1; k < PARTIALS; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
    return most[0];
}

static float refresh(float *fresh, const float *frozen, float *m, const float *last, size_t n,
                     const terse_refresh_options *options, const terse_packed_momentum *packed) {
    const refresh_weights w = refresh_weights_of(options);
    return options->root ? refresh_as(fresh, frozen, m, last, n, w, packed, 1)
                         : refresh_as(fresh, frozen, m, last, n, w, packed, 0);
}

#endif
