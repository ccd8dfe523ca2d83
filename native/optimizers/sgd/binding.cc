#include "../binding.h"

namespace {

Napi::Value step(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    float* m = info[1].IsUndefined() ? nullptr : floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_sgd_options options = sgd_options_of(options_of(info, 3));
    const terse_sgd& sgd = table_of<terse_sgd>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) {
                        return sgd.step(theta + i, m ? m + i : nullptr, g + i, count, &options);
                    }));
}

}  // namespace

Napi::Value sgds(const Napi::CallbackInfo& info) { return implementations(info, terse_sgd_at, {method<step>("step")}); }
