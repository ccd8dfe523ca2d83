// The kernels of terse/optimizers.h on Adam's moments, in loops that a compiler turns into vector instructions: moments.c and moments_avx2.c
// compile them for different instructions, with the same bits.
#ifndef TERSE_MOMENTS_H
#define TERSE_MOMENTS_H
#include <string.h>

#include "element.h"

enum { BLOCK = 64, PARTIALS = 16, PIECE = 1024 };  // elements that are checked before any of them is stored; partial sums; elements that stay in the cache

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

static void carry(float *restrict error, float *restrict m, float *restrict last, const float *restrict g, size_t n, float keep, float add) {
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t count = n - i < PIECE ? n - i : PIECE;
        if (last) memcpy(last + i, m + i, count * sizeof *m);
        for (size_t k = i; k < i + count; k++) {
            error[k] = carried(error[k], m[k], g[k], keep, add);
            m[k] = 0.0f;
        }
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
    for (size_t width = PARTIALS / 2; width; width /= 2)
        for (size_t k = 0; k < width; k++) {
            of_theta[k] += of_theta[k + width];
            of_update[k] += of_update[k + width];
        }
    sums[0] = of_theta[0];
    sums[1] = of_update[0];
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
