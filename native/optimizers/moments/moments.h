// The kernels of terse/optimizers.h on Adam's moments, in loops that a compiler turns into vector instructions: moments.c and moments_avx2.c
// compile them for different instructions, with the same bits. Both define, for blocks of 64 elements:
//
//   uint64_t plus_of_block(const float *x)                                          bit k: whether x[k] >= 0
//   void unpack_block(float *m, uint64_t plus, float if_plus, float if_minus)       m[k] = if_plus where bit k is 1, else if_minus
#ifndef TERSE_MOMENTS_H
#define TERSE_MOMENTS_H
#include <string.h>

#include "element.h"

enum { BLOCK = 64, PARTIALS = 16 };  // elements that are checked before any of them is stored, a word of signs; partial sums

static size_t accumulate(float *restrict m, float *restrict v, const float *restrict g, size_t n, const terse_moments_options *options) {
    const moments_weights w = moments_weights_of(options->beta1, options->beta2, options->gradient_scale);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        float new_m[BLOCK], new_v[BLOCK];
        int bad = 0;
        for (size_t k = 0; k < count; k++) {
            const float scaled = g[i + k] * w.gradient;
            new_m[k] = next_m(w, m[i + k], scaled);
            new_v[k] = next_v(w, v[i + k], scaled);
            bad |= !is_real(new_m[k]) | !is_real(new_v[k]);
        }
        if (bad)
            for (size_t k = 0; k < count; k++)
                if (!is_real(new_m[k]) || !is_real(new_v[k])) return i + k;
        for (size_t k = 0; k < count; k++) m[i + k] = new_m[k];
        for (size_t k = 0; k < count; k++) v[i + k] = new_v[k];
    }
    return n;
}

static inline float rest_of(float x, float sent) { return x + (x >= 0.0f ? -sent : sent); }

// Bits i .. i + 63 of a mask of n bits, 0 beyond them.
static inline uint64_t bits_at(const uint8_t *mask, size_t i, size_t n) {
    uint64_t word = 0;
    memcpy(&word, mask + i / 8, n - i < BLOCK ? (n - i + 7) / 8 : BLOCK / 8);
    return word;
}

static double fold(double partial[PARTIALS]) {
    for (size_t width = PARTIALS / 2; width; width /= 2)
        for (size_t k = 0; k < width; k++) partial[k] += partial[k + width];
    return partial[0];
}

static double carry(float *restrict error, uint8_t *restrict signs, const float *restrict m, const float *restrict g, const uint8_t *hold, size_t n, float keep, float add, float sent) {
    double partial[PARTIALS] = {0};
    for (size_t i = 0; i < n; i += BLOCK) {
        float *restrict x = error + i;
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        const uint64_t held = hold ? bits_at(hold, i, n) : 0;
        uint64_t plus = 0;
        if (count == BLOCK && !held) {
            for (size_t k = 0; k < BLOCK; k++) x[k] = carried(rest_of(x[k], sent), m[i + k], g[i + k], keep, add);
            for (size_t row = 0; row < BLOCK; row += PARTIALS)
                for (size_t k = 0; k < PARTIALS; k++) partial[k] += (double)x[row + k] * x[row + k];
            plus = plus_of_block(x);
        } else
            for (size_t k = 0; k < count; k++) {
                const int is_held = (int)(held >> k & 1);
                x[k] = carried(is_held ? x[k] : rest_of(x[k], sent), m[i + k], g[i + k], keep, add);
                partial[k % PARTIALS] += (double)x[k] * (is_held ? 0.0 : (double)x[k]);  // a held NaN or infinity gives NaN
                plus |= (uint64_t)(!is_held && x[k] >= 0.0f) << k;
            }
        memcpy(signs + i / 8, &plus, (count + 7) / 8);
    }
    return fold(partial);
}

static void unpack(float *restrict m, const uint8_t *restrict signs, const uint8_t *hold, size_t n, float scale) {
    const float if_plus = 0.0f + scale, if_minus = 0.0f - scale;  // +0 if the scale is 0
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        const uint64_t plus = bits_at(signs, i, n), held = hold ? bits_at(hold, i, n) : 0;
        if (count == BLOCK && !held) unpack_block(m + i, plus, if_plus, if_minus);
        else
            for (size_t k = 0; k < count; k++) m[i + k] = held >> k & 1 ? 0.0f : plus >> k & 1 ? if_plus : if_minus;
    }
}

static void squares(const float *restrict theta, const float *restrict m, const float *restrict v, size_t n, const terse_adam_update *update, double sums[2]) {
    const adam_form f = adam_form_of(update);
    double of_theta[PARTIALS] = {0}, of_update[PARTIALS] = {0};
    size_t i = 0;
    for (; i + PARTIALS <= n; i += PARTIALS)
        for (size_t k = 0; k < PARTIALS; k++) {
            const float u = update_of(f, theta[i + k], m[i + k], v[i + k]);
            of_theta[k] += (double)theta[i + k] * theta[i + k];
            of_update[k] += (double)u * u;
        }
    for (size_t k = 0; i + k < n; k++) {
        const float u = update_of(f, theta[i + k], m[i + k], v[i + k]);
        of_theta[k] += (double)theta[i + k] * theta[i + k];
        of_update[k] += (double)u * u;
    }
    sums[0] = fold(of_theta);
    sums[1] = fold(of_update);
}

static void apply(float *restrict theta, const float *restrict m, const float *restrict v, size_t n, const terse_adam_update *update, float rate) {
    const adam_form f = adam_form_of(update);
    for (size_t i = 0; i < n; i++) theta[i] = theta[i] - rate * update_of(f, theta[i], m[i], v[i]);
}

static float refresh(float *restrict fresh, const float *restrict frozen, const float *restrict m, const float *restrict last, size_t n, const terse_refresh_options *options) {
    const refresh_weights w = refresh_weights_of(options);
    float most[PARTIALS] = {0};
    size_t i = 0;
    for (; i < n; i += PARTIALS) {
        const size_t count = n - i < PARTIALS ? n - i : PARTIALS;
        float ratio[PARTIALS] = {0};
        for (size_t k = 0; k < count; k++) {
            fresh[i + k] = refreshed(w, fresh[i + k], m[i + k], last[i + k]);
            ratio[k] = ratio_of(w, options->root, frozen[i + k], fresh[i + k]);
        }
        for (size_t k = 0; k < PARTIALS; k++) most[k] = ratio[k] > most[k] ? ratio[k] : most[k];
    }
    for (size_t k = 1; k < PARTIALS; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
    return most[0];
}

#endif
