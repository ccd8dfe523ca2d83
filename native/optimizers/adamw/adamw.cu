// AdamW on a GPU, in the arithmetic of adamw.c. theta, m, v, g (n): 28 bytes per element.
#include "adamw.cuh"

#include "../elementwise.cuh"
#include "adamw.h"

namespace {
struct adamw_work {
    struct element {
        float theta, m, v, g;
    };
    float *theta, *m, *v;
    const float *g;
    adamw_weights w;
    __device__ element load(size_t i) const { return {theta[i], m[i], v[i], g[i]}; }
    __device__ bool store(size_t i, const element &e) const {
        const float scaled = e.g * w.gradient, new_m = adamw_m(w, e.m, scaled), new_v = adamw_v(w, e.v, scaled);
        theta[i] = adamw_theta(w, e.theta, new_m, new_v);
        m[i] = new_m;
        v[i] = new_v;
        return is_real(new_m) && is_real(new_v);
    }
};
}  // namespace

cudaError_t adamw_step(float *theta, float *m, float *v, const float *g, size_t n, const terse_adamw_options *options,
                       uint64_t *bad, void *stream) {
    return launch_elementwise(n, adamw_work{theta, m, v, g, adamw_weights_of(options)}, bad, stream);
}
