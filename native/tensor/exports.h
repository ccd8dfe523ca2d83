// The functions that src/native.ts declares are exported by families. JavaScript gives and gets tensors as handles.
#pragma once
#include <algorithm>
#include <span>
#include <type_traits>

#include "context.h"
#include "ivalues.h"

namespace terse {

constexpr size_t max_parameters = 4;

// The arguments of an exported function; undefined where JavaScript gave none.
struct Call {
    Context& context;
    napi_env env;
    napi_value values[max_parameters];

    const at::Tensor& tensor(size_t i = 0, const char* what = "the tensor") const {
        return tensor_of(context, values[i], what);
    }
    at::Tensor tensor_or_none(size_t i, const char* what) const {
        const napi_valuetype type = type_of(env, values[i]);
        return type == napi_null || type == napi_undefined ? at::Tensor() : tensor(i, what);
    }
    bool flag(size_t i) const {
        bool value;
        if (napi_get_value_bool(env, values[i], &value) != napi_ok) throw TypeError("expected true or false");
        return value;
    }
    double number(size_t i) const {
        double value;
        if (napi_get_value_double(env, values[i], &value) != napi_ok) throw TypeError("expected a number");
        return value;
    }
    napi_value handle(at::Tensor tensor) const {
        return tensor.defined() ? terse::number(env, context.handles.add(std::move(tensor))) : null(env);
    }
};

template <size_t N>
struct Name {
    char text[N];
    constexpr Name(const char (&given)[N]) { std::copy_n(given, N, text); }
};

// JavaScript gets what `body(const Call&)` returns, or undefined where it returns nothing.
template <Name name, auto body>
napi_value exported(napi_env env, napi_callback_info info) {
    Context* context;
    napi_value values[max_parameters];
    size_t count = max_parameters;
    napi_get_cb_info(env, info, &count, values, nullptr, reinterpret_cast<void**>(&context));
    return guard(
        *context, [] { return std::string(name.text); },
        [&]() -> napi_value {
            const Call call{*context, env, {values[0], values[1], values[2], values[3]}};
            if constexpr (std::is_void_v<decltype(body(call))>) {
                body(call);
                return undefined(env);
            } else return body(call);
        });
}

struct Export {
    const char* name;
    napi_callback function;
};
#define TERSE_EXPORT(name, body) {name, exported<name, body>}

std::span<const Export> operator_exports();  // any operator of libtorch by its schema's name
std::span<const Export> tensor_exports();    // of one tensor: what it is, its elements, and its lifetime
std::span<const Export> autograd_exports();  // gradients, the backward thread and checkpoints
std::span<const Export> library_exports();   // libtorch's settings of the process: autocast, random numbers, threads,
                                             // devices

}  // namespace terse
