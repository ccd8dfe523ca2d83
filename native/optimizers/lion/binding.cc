#include "../binding.h"

namespace {

Napi::Value vote(const Napi::CallbackInfo& info) {
    size_t n;
    float* m = first_floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    uint8_t* wire = packed_signs_of(info[0], "wire", n);
    const terse_lion_options options = lion_vote_options_of(options_of(info, 3));
    return accepted(info, terse_lion_vote(&table_of<terse_lion>(info), wire, m, g, n, &options));
}

void mix(const Napi::CallbackInfo& info) {
    size_t n;
    float* c = first_floats_of(info[0], "c", n);
    float* m = floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_lion_options options = lion_mix_options_of(options_of(info, 3));
    terse_lion_mix(&table_of<terse_lion>(info), c, m, g, n, &options);
}

Napi::Value step(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    float* m = floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_lion_options options = lion_step_options_of(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) {
                        return lion.step(theta + i, m + i, g + i, count, &options);
                    }));
}

void apply_signs(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    const uint8_t* wire = packed_signs_of(info[1], "wire", n);
    const Change change(options_of(info, 2));
    terse_lion_apply_signs(&table_of<terse_lion>(info), theta, wire, n, change.keep, change.scale);
}

void apply_ternary(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    const uint8_t* plus = packed_signs_of(info[1], "plus", n);
    const uint8_t* nonzero = packed_signs_of(info[2], "nonzero", n);
    const Change change(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) {
        lion.apply_ternary(theta + i, plus + i / 8, nonzero + i / 8, end - i, change.keep, change.scale);
    });
}

void apply_tally(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    const double ranks = ranks_of(info[2]);
    const std::vector<const uint8_t*> planes = planes_of(info[1], ranks, n);
    const Change change(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) {
        std::vector<const uint8_t*> part(planes);
        for (auto& plane : part) plane += i / 8;
        lion.apply_tally(theta + i, part.data(), static_cast<size_t>(ranks), end - i, change.keep, change.scale);
    });
}

}  // namespace

Napi::Value lions(const Napi::CallbackInfo& info) {
    return implementations(info, terse_lion_at,
                           {
                               method<vote>("vote"),
                               method<mix>("mix"),
                               method<step>("step"),
                               method<apply_signs>("applySigns"),
                               method<apply_ternary>("applyTernary"),
                               method<apply_tally>("applyTally"),
                           });
}
