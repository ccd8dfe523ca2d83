// Node-API calls that throw C++ exceptions on failure; `guard` (context.h) turns these into JavaScript exceptions.
#pragma once
#include <node_api.h>

#include <stdexcept>
#include <string>

namespace terse {

struct TypeError : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct RangeError : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct DisposedError : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct Pending {};  // a JavaScript exception is already pending

inline void check(napi_env env, napi_status status) {
    if (status == napi_ok) return;
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (pending) throw Pending{};
    const napi_extended_error_info* info = nullptr;
    napi_get_last_error_info(env, &info);
    throw TypeError(info && info->error_message ? info->error_message : "unexpected value");
}

inline napi_valuetype type_of(napi_env env, napi_value value) {
    napi_valuetype type;
    check(env, napi_typeof(env, value, &type));
    return type;
}

inline std::string text_of(napi_env env, napi_value value) {
    size_t length;
    if (napi_get_value_string_utf8(env, value, nullptr, 0, &length) != napi_ok) throw TypeError("expected a string");
    std::string text(length, '\0');
    check(env, napi_get_value_string_utf8(env, value, text.data(), length + 1, &length));
    return text;
}

inline napi_value number(napi_env env, double value) {
    napi_value result;
    check(env, napi_create_double(env, value, &result));
    return result;
}

inline napi_value integer(napi_env env, int64_t value) {
    napi_value result;
    if (value >= -9007199254740991 && value <= 9007199254740991) check(env, napi_create_int64(env, value, &result));
    else check(env, napi_create_bigint_int64(env, value, &result));
    return result;
}

inline napi_value boolean(napi_env env, bool value) {
    napi_value result;
    check(env, napi_get_boolean(env, value, &result));
    return result;
}

inline napi_value text(napi_env env, const std::string& value) {
    napi_value result;
    check(env, napi_create_string_utf8(env, value.data(), value.size(), &result));
    return result;
}

inline napi_value undefined(napi_env env) {
    napi_value result;
    check(env, napi_get_undefined(env, &result));
    return result;
}

inline napi_value null(napi_env env) {
    napi_value result;
    check(env, napi_get_null(env, &result));
    return result;
}

inline napi_value array(napi_env env, size_t length) {
    napi_value result;
    check(env, napi_create_array_with_length(env, length, &result));
    return result;
}

inline void set(napi_env env, napi_value object, uint32_t index, napi_value value) {
    check(env, napi_set_element(env, object, index, value));
}
inline void set(napi_env env, napi_value object, const char* name, napi_value value) {
    check(env, napi_set_named_property(env, object, name, value));
}

}  // namespace terse
