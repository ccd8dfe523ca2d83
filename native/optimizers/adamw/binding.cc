#include "../binding.h"

namespace {

Napi::Value step(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    float* m = floats_of(info[1], "m", n);
    float* v = floats_of(info[2], "v", n);
    const float* g = floats_of(info[3], "g", n);
    const terse_adamw_options options = adamw_options_of(options_of(info, 4));
    const terse_adamw& adamw = table_of<terse_adamw>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) {
                        return adamw.step(theta + i, m + i, v + i, g + i, count, &options);
                    }));
}

}  // namespace

Napi::Value adamws(const Napi::CallbackInfo& info) {
    return implementations(info, terse_adamw_at, {method<step>("step")});
}
