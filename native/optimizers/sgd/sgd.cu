// SGD on a GPU, in the arithmetic of sgd.h. theta, m, g (n): 20 bytes per element, 12 without momentum.
#include "sgd.cuh"

#include "../elementwise.cuh"
#include "element.h"

namespace {
template <bool MOMENTUM>
struct sgd_work {
    struct element {
        float theta, m, g;
    };
    float *theta, *m;
    const float *g;
    sgd_weights w;
    int nesterov;
    __device__ element load(size_t i) const { return {theta[i], MOMENTUM ? m[i] : 0.0f, g[i]}; }
    __device__ bool store(size_t i, const element &e) const {
        float u = decayed_gradient(w, e.g, e.theta);
        if (MOMENTUM) {
            const float new_m = next_momentum(w, e.m, u);
            u = sgd_update(w, nesterov, u, new_m);
            m[i] = new_m;
        }
        theta[i] = e.theta - w.lr * u;
        return is_real(u);
    }
};
}  // namespace

cudaError_t sgd_step(float *theta, float *m, const float *g, size_t n, const terse_sgd_options *options, uint64_t *bad,
                     void *stream) {
    const sgd_weights w = sgd_weights_of(options);
    if (m) return launch_elementwise(n, sgd_work<true>{theta, m, g, w, options->nesterov}, bad, stream);
    return launch_elementwise(n, sgd_work<false>{theta, m, g, w, 0}, bad, stream);
}
