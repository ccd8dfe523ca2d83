// The kernels of terse/optimizers.h on Adam's moments, in loops that a compiler turns into vector instructions: moments.c and moments_avx2.c
// compile them for different instructions. Every operation is rounded to fp32 on its own, so both give the same bits.
#ifndef TERSE_MOMENTS_H
#define TERSE_MOMENTS_H
#include <math.h>

#include "terse/optimizers.h"

enum { BLOCK = 64, PARTIALS = 16 };  // elements that are checked before any of them is stored; partial sums

#define REAL(x) ((x) - (x) == 0.0f)  // neither NaN nor infinite

static inline float mixed(float a, float x, float b, float y) { return a * x + b * y; }

typedef struct form {
    float first, second, epsilon, decay;
} form;

static inline form form_of(const terse_adam_update *update) {
    return (form){(float)update->first, (float)update->second, (float)update->eps, (float)update->weight_decay};
}

static inline float update_of(form f, float theta, float m, float v) {
    return m * f.first / (sqrtf(v) * f.second + f.epsilon) + f.decay * theta;
}

static size_t accumulate(float *restrict m, float *restrict v, const float *restrict g, size_t n, const terse_moments_options *options) {
    const float m_in_m = (float)options->beta1, g_in_m = (float)(1 - options->beta1), v_in_v = (float)options->beta2, g_in_v = (float)(1 - options->beta2), scale = options->gradient_scale;
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        float next_m[BLOCK], next_v[BLOCK];
        int bad = 0;
        for (size_t k = 0; k < count; k++) {
            const float scaled = g[i + k] * scale;
            next_m[k] = mixed(m_in_m, m[i + k], g_in_m, scaled);
            next_v[k] = v_in_v * v[i + k] + g_in_v * scaled * scaled;
            bad |= !REAL(next_m[k]) | !REAL(next_v[k]);
        }
        if (bad)
            for (size_t k = 0; k < count; k++)
                if (!REAL(next_m[k]) || !REAL(next_v[k])) return i + k;
        for (size_t k = 0; k < count; k++) m[i + k] = next_m[k];
        for (size_t k = 0; k < count; k++) v[i + k] = next_v[k];
    }
    return n;
}

static void squares(const float *restrict theta, const float *restrict m, const float *restrict v, size_t n, const terse_adam_update *update, double sums[2]) {
    const form f = form_of(update);
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
    const form f = form_of(update);
    for (size_t i = 0; i < n; i++) theta[i] = theta[i] - rate * update_of(f, theta[i], m[i], v[i]);
}

static float refresh(float *restrict fresh, const float *restrict frozen, const float *restrict m, const float *restrict last, size_t n, const terse_refresh_options *options) {
    const float last_in_g = (float)options->beta1, g_in_m = (float)(1 - options->beta1), v_in_v = (float)options->beta2, g_in_v = (float)(1 - options->beta2), epsilon = (float)options->eps;
    float most[PARTIALS] = {0};
    size_t i = 0;
    for (; i < n; i += PARTIALS) {
        const size_t count = n - i < PARTIALS ? n - i : PARTIALS;
        float ratio[PARTIALS] = {0};
        for (size_t k = 0; k < count; k++) {
            const float g = (m[i + k] - last_in_g * last[i + k]) / g_in_m;
            fresh[i + k] = v_in_v * fresh[i + k] + g_in_v * g * g;
            ratio[k] = options->root ? (sqrtf(frozen[i + k]) + epsilon) / (sqrtf(fresh[i + k]) + epsilon) : (frozen[i + k] + epsilon) / (fresh[i + k] + epsilon);
        }
        for (size_t k = 0; k < PARTIALS; k++) most[k] = ratio[k] > most[k] ? ratio[k] : most[k];
    }
    for (size_t k = 1; k < PARTIALS; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
    return most[0];
}

#endif
