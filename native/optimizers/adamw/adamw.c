#include "adamw.h"

static size_t step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options) {
    const adamw_weights w = adamw_weights_of(options);
    for (size_t i = 0; i < n; i++) {
        const float scaled = g[i] * w.gradient;
        const float next_m = w.m_in_m * m[i] + w.g_in_m * scaled;
        const float next_v = w.v_in_v * v[i] + w.g_in_v * scaled * scaled;
        if (next_m - next_m != 0.0f || next_v - next_v != 0.0f) return i;
        theta[i] = theta[i] * w.keep - w.rate * next_m / (sqrtf(next_v) + w.epsilon);
        m[i] = next_m;
        v[i] = next_v;
    }
    return n;
}

const terse_adamw terse_adamw_scalar = {"scalar", step};
