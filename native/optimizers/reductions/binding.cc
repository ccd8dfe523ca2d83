#include "../binding.h"

namespace {

Napi::Value sum_of_squares(const Napi::CallbackInfo& info) {
    size_t n;
    const float* x = first_floats_of(info[0], "x", n);
    return Napi::Number::New(info.Env(), terse_sum_of_squares(&table_of<terse_reductions>(info), x, n));
}

Napi::Value difference(const Napi::CallbackInfo& info) {
    size_t n;
    float* to = first_floats_of(info[0], "d", n);
    const float *a = floats_of(info[1], "a", n), *b = floats_of(info[2], "b", n);
    return Napi::Number::New(info.Env(), terse_difference(&table_of<terse_reductions>(info), to, a, b, n));
}

}  // namespace

Napi::Value reductions(const Napi::CallbackInfo& info) {
    return implementations(info, terse_reductions_at,
                           {method<sum_of_squares>("sumOfSquares"), method<difference>("difference")});
}
