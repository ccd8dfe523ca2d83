// Adam's moments on a GPU, in the arithmetic of moments.h. All arrays (n). Bytes per element: accumulate 20, squares
// 12, apply 16, refresh 20.
#include "moments.cuh"

#include "../elementwise.cuh"
#include "../ordered_sums.cuh"
#include "element.h"

namespace {
struct accumulate_work {
    struct element {
        float m, v, g;
    };
    float *m, *v;
    const float *g;
    moments_weights w;
    __device__ element load(size_t i) const { return {m[i], v[i], g[i]}; }
    __device__ bool store(size_t i, const element &e) const {
        const float scaled = e.g * w.gradient;
        m[i] = next_m(w, e.m, scaled);
        v[i] = next_v(w, e.v, scaled);
        return is_real(next_m(w, e.m, scaled)) && is_real(next_v(w, e.v, scaled));
    }
};

struct apply_work {
    struct element {
        float theta, m, v;
    };
    float *theta;
    const float *m, *v;
    adam_form form;
    float rate;
    __device__ element load(size_t i) const { return {theta[i], m[i], v[i]}; }
    __device__ bool store(size_t i, const element &e) const {
        theta[i] = e.theta - rate * update_of(form, e.theta, e.m, e.v);
        return true;
    }
};

// Of theta, and of its update.
struct squares_work {
    static constexpr unsigned SUMS = 2;
    static constexpr bool PAGES_IN_TURN = false;
    struct element {
        float theta, m, v;
    };
    const float *theta, *m, *v;
    adam_form form;
    __device__ element load(size_t i) const { return {theta[i], m[i], v[i]}; }
    __device__ void terms(const element &e, float *of) const {
        of[0] = e.theta, of[1] = update_of(form, e.theta, e.m, e.v);
    }
};

__global__ void __launch_bounds__(ELEMENT_THREADS)
    refresh_kernel(float *fresh, const float *frozen, const float *m, const float *last, size_t n, refresh_weights w,
                   int root, unsigned *most) {
    unsigned largest = 0;
    for (size_t i = first_thread(); i < n; i += all_threads()) {
        const float next = refreshed(w, fresh[i], m[i], last[i]), ratio = ratio_of(w, root, frozen[i], next);
        fresh[i] = next;
        if (ratio > 0.0f) largest = larger(largest, __float_as_uint(ratio));  // not NaN
    }
    largest = __reduce_max_sync(EVERY_LANE, largest);
    if (lane_of_warp() == 0) atomicMax(most, largest);
}
}  // namespace

cudaError_t moments_accumulate(float *m, float *v, const float *g, size_t n, const terse_moments_options *options,
                               uint64_t *bad, void *stream) {
    return launch_elementwise(
        n, accumulate_work{m, v, g, moments_weights_of(options->beta1, options->beta2, options->gradient_scale)}, bad,
        stream);
}

cudaError_t moments_squares(double *sums, const float *theta, const float *m, const float *v, size_t n,
                            const terse_adam_update *update, void *stream) {
    return launch_ordered_sums(sums, n, squares_work{theta, m, v, adam_form_of(update)}, stream);
}

cudaError_t moments_apply(float *theta, const float *m, const float *v, size_t n, const terse_adam_update *update,
                          float rate, void *stream) {
    return launch_elementwise(n, apply_work{theta, m, v, adam_form_of(update), rate}, nullptr, stream);
}

cudaError_t moments_refresh(float *fresh, const float *frozen, const float *m, const float *last, size_t n,
                            const terse_refresh_options *options, unsigned *most, void *stream) {
    return launch_kernel(refresh_kernel, divided_up(n, ELEMENTS), ELEMENT_THREADS, stream, fresh, frozen, m, last, n,
                         refresh_weights_of(options), options->root, most);
}
