#include "context.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backward_thread.h"
#include "checkpoint.h"
#include "operator_schema.h"

namespace terse {

Context::Context(napi_env env) : env(env) {}
Context::~Context() = default;

// The dtypes that JavaScript knows, the frequent ones first.
static constexpr std::pair<const char*, c10::ScalarType> dtypes[] = {
    {"f32", c10::ScalarType::Float}, {"i64", c10::ScalarType::Long},   {"bf16", c10::ScalarType::BFloat16},
    {"f16", c10::ScalarType::Half},  {"f64", c10::ScalarType::Double}, {"bool", c10::ScalarType::Bool},
    {"u8", c10::ScalarType::Byte},   {"i8", c10::ScalarType::Char},    {"i16", c10::ScalarType::Short},
    {"i32", c10::ScalarType::Int},
};

const char* name_of(c10::ScalarType dtype) {
    for (const auto& [name, type] : dtypes)
        if (dtype == type) return name;
    return c10::toString(dtype);
}

c10::ScalarType dtype_of(const std::string& name) {
    for (const auto& [known, type] : dtypes)
        if (name == known) return type;
    throw TypeError("unknown dtype \"" + name + "\"; known: u8, i8, i16, i32, i64, f16, bf16, f32, f64, bool");
}

std::string describe(const at::Tensor& tensor) {
    std::string text = name_of(tensor.scalar_type());
    text += '[';
    for (int64_t i = 0; i < tensor.dim(); i++) text += (i ? ", " : "") + std::to_string(tensor.size(i));
    text += ']';
    return tensor.is_cpu() ? text : text + " on " + tensor.device().str();
}

const at::Tensor& tensor_of(Context& context, napi_value value, const char* what) {
    double handle;
    if (napi_get_value_double(context.env, value, &handle) != napi_ok || !Handles::plausible(handle))
        throw TypeError(std::string(what) + ": expected a tensor");
    const at::Tensor* tensor = context.handles.find(handle);
    if (!tensor)
        throw DisposedError(
            std::string(what) +
            " has been disposed, or the scope that created it has ended; keep() it, or return it from the scope");
    return *tensor;
}

// How the allocator of libtorch on the CPU ends, between the names of its own files.
static const char wanted[] = "you tried to allocate ";

static std::string size_text(double bytes) {
    const char* unit = "bytes";
    for (const char* larger : {"kB", "MB", "GB", "TB"})
        if (bytes >= 1000) bytes /= 1000, unit = larger;
    char text[64];
    std::snprintf(text, sizeof text, "%.3g %s", bytes, unit);
    return text;
}

Failure current_failure(const std::string& where) {
    const auto sentence = [&](const char* what) { return where + ": " + what; };
    try {
        throw;
    } catch (const DisposedError& error) {
        return {Failure::Kind::disposed, sentence(error.what()), ""};
    } catch (const TypeError& error) {
        return {Failure::Kind::type, sentence(error.what()), ""};
    } catch (const RangeError& error) {
        return {Failure::Kind::range, sentence(error.what()), ""};
    } catch (const c10::Error& error) {
        const std::string what = error.what_without_backtrace();
        if (const size_t at = what.find(wanted); at != std::string::npos)
            return {Failure::Kind::tensor,
                    where + ": there is not enough memory for a tensor of " +
                        size_text(std::strtod(what.c_str() + at + std::strlen(wanted), nullptr)),
                    error.what()};
        return {Failure::Kind::tensor, sentence(error.what_without_backtrace()), error.what()};
    } catch (const std::bad_alloc&) {
        return {Failure::Kind::tensor, sentence("there is not enough memory"), ""};
    } catch (const std::exception& error) {
        return {Failure::Kind::tensor, sentence(error.what()), ""};
    } catch (...) {
        return {Failure::Kind::tensor, sentence("a C++ exception of an unknown kind"), ""};
    }
}

napi_value error_of(Context& context, const Failure& failure) {
    const napi_env env = context.env;
    const napi_value message = text(env, failure.message);
    napi_value error;
    if (failure.kind == Failure::Kind::type) {
        check(env, napi_create_type_error(env, nullptr, message, &error));
        return error;
    }
    if (failure.kind == Failure::Kind::range) {
        check(env, napi_create_range_error(env, nullptr, message, &error));
        return error;
    }
    const napi_ref reference = failure.kind == Failure::Kind::disposed ? context.disposed_error : context.tensor_error;
    if (!reference) {
        check(env, napi_create_error(env, nullptr, message, &error));
        return error;
    }
    napi_value constructor;
    check(env, napi_get_reference_value(env, reference, &constructor));
    const napi_value arguments[] = {message, failure.trace.empty() ? undefined(env) : text(env, failure.trace)};
    check(env, napi_new_instance(env, constructor, 2, arguments, &error));
    return error;
}

}  // namespace terse
