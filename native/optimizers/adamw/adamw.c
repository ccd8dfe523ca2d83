#include "adamw.h"

static size_t step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options) {
    const adamw_weights w = adamw_weights_of(options);
    for (size_t i = 0; i < n; i++) {
        const float scaled = g[i] * w.gradient;
        const float next_m = adamw_m(w, m[i], scaled);
        const float next_v = adamw_v(w, v[i], scaled);
        if (!is_real(next_m) || !is_real(next_v)) return i;
        theta[i] = adamw_theta(w, theta[i], next_m, next_v);
        m[i] = next_m;
        v[i] = next_v;
    }
    return n;
}

const terse_adamw terse_adamw_scalar = {"scalar", step};
