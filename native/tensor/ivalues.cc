#include "ivalues.h"

#include <cmath>
#include <optional>

#include "libtorch.h"

namespace terse {
namespace {

const char* expectation(Kind kind) {
    switch (kind) {
        case Kind::tensor: return "a tensor";
        case Kind::tensors: return "an array of tensors";
        case Kind::scalar: return "a number";
        case Kind::integer: return "an integer";
        case Kind::number: return "a number";
        case Kind::boolean: return "true or false";
        case Kind::text: return "a string";
        case Kind::integers: return "an array of integers";
        case Kind::numbers: return "an array of numbers";
        case Kind::booleans: return "an array of booleans";
        case Kind::scalars: return "an array of numbers";
        case Kind::dtype: return "a dtype (\"f32\", \"bf16\", …)";
        case Kind::layout: return "a layout (\"strided\")";
        case Kind::memory_format:
            return "a memory format (\"contiguous\", \"preserve\", \"channels_last\", \"channels_last_3d\")";
        case Kind::device: return "a device (\"cpu\", \"cuda:0\")";
        case Kind::generator: return "null: only the default generator is supported";
        default: return "a type that JavaScript does not have";
    }
}

[[noreturn]] void refuse(napi_env env, const Argument& argument, napi_value value) {
    static const char* names[] = {"undefined", "null",      "a boolean",  "a number",    "a string",
                                  "a symbol",  "an object", "a function", "an external", "a bigint"};
    const napi_valuetype type = type_of(env, value);
    std::string got = names[type];
    if (type == napi_number) {
        napi_value written;
        check(env, napi_coerce_to_string(env, value, &written));
        got = text_of(env, written);
    } else if (type == napi_string) {
        got = "\"" + text_of(env, value) + "\"";
    }
    throw TypeError("argument \"" + argument.name + "\": expected " + expectation(argument.kind) + ", got " + got);
}

std::optional<double> number_in(napi_env env, napi_value value) {
    double number;
    return napi_get_value_double(env, value, &number) == napi_ok ? std::optional(number) : std::nullopt;
}

std::optional<bool> flag_in(napi_env env, napi_value value) {
    bool flag;
    return napi_get_value_bool(env, value, &flag) == napi_ok ? std::optional(flag) : std::nullopt;
}

std::optional<int64_t> bigint_in(napi_env env, napi_value value) {
    int64_t number;
    bool lossless = false;
    const bool is_bigint = napi_get_value_bigint_int64(env, value, &number, &lossless) == napi_ok;
    return is_bigint && lossless ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> integer_in(napi_env env, napi_value value) {
    const std::optional<double> number = number_in(env, value);
    if (!number) return bigint_in(env, value);
    if (!(*number >= -9223372036854775808.0 && *number < 9223372036854775808.0)) return std::nullopt;
    const auto whole = static_cast<int64_t>(*number);
    return static_cast<double>(whole) == *number ? std::optional(whole) : std::nullopt;
}

// JavaScript has one type of number. Integers become integer scalars, so that i64 + 1 stays i64; −0 becomes a float.
std::optional<c10::Scalar> scalar_in(napi_env env, napi_value value) {
    if (const std::optional<double> number = number_in(env, value)) {
        const bool is_whole = std::abs(*number) <= 9007199254740991.0 &&
                              *number == static_cast<double>(static_cast<int64_t>(*number)) &&
                              !(*number == 0 && std::signbit(*number));
        return is_whole ? c10::Scalar(static_cast<int64_t>(*number)) : c10::Scalar(*number);
    }
    if (const std::optional<bool> flag = flag_in(env, value)) return c10::Scalar(*flag);
    if (const std::optional<int64_t> big = bigint_in(env, value)) return c10::Scalar(*big);
    return std::nullopt;
}

const at::Tensor& tensor_argument(Context& context, const Argument& argument, napi_value value, double handle) {
    const at::Tensor* tensor = context.handles.find(handle);
    if (!tensor && !Handles::plausible(handle)) refuse(context.env, argument, value);
    if (!tensor)
        throw DisposedError(
            "the tensor given as \"" + argument.name +
            "\" has been disposed, or the scope that created it has ended; keep() it, or return it from the scope");
    return *tensor;
}

const at::Tensor& tensor_argument(Context& context, const Argument& argument, napi_value value) {
    const std::optional<double> handle = number_in(context.env, value);
    if (!handle) refuse(context.env, argument, value);
    return tensor_argument(context, argument, value, *handle);
}

// Calls `take(element)` for each element of an array. Returns false if the value is not an array.
template <class Take>
bool each(napi_env env, napi_value value, Take&& take) {
    bool is_array = false;
    check(env, napi_is_array(env, value, &is_array));
    if (!is_array) return false;
    uint32_t length;
    check(env, napi_get_array_length(env, value, &length));
    for (uint32_t i = 0; i < length; i++) {
        napi_value element;
        check(env, napi_get_element(env, value, i, &element));
        take(element);
    }
    return true;
}

c10::Layout layout_of(const std::string& name) {
    if (name == "strided") return c10::Layout::Strided;
    throw TypeError("unknown layout \"" + name + "\"; only \"strided\" is supported");
}

c10::MemoryFormat memory_format_of(const std::string& name) {
    if (name == "contiguous") return c10::MemoryFormat::Contiguous;
    if (name == "preserve") return c10::MemoryFormat::Preserve;
    if (name == "channels_last") return c10::MemoryFormat::ChannelsLast;
    if (name == "channels_last_3d") return c10::MemoryFormat::ChannelsLast3d;
    throw TypeError("unknown memory format \"" + name +
                    "\"; known: contiguous, preserve, channels_last, channels_last_3d");
}

}  // namespace

c10::IValue default_of(const Argument& argument) {
    if (argument.has_default) return argument.fallback;
    if (argument.optional) return {};
    throw TypeError("argument \"" + argument.name + "\" is missing: expected " + expectation(argument.kind));
}

c10::IValue value_of(Context& context, const Argument& argument, napi_value value) {
    const napi_env env = context.env;
    switch (argument.kind) {
        case Kind::tensor:
            if (const auto handle = number_in(env, value)) return tensor_argument(context, argument, value, *handle);
            break;
        case Kind::scalar:
            if (const auto scalar = scalar_in(env, value)) return *scalar;
            break;
        case Kind::integer:
            if (const auto number = integer_in(env, value)) return *number;
            break;
        case Kind::number:
            if (const auto number = number_in(env, value)) return *number;
            break;
        case Kind::boolean:
            if (const auto flag = flag_in(env, value)) return *flag;
            break;
        default: break;
    }

    const napi_valuetype type = type_of(env, value);
    if (type == napi_undefined) return default_of(argument);
    if (type == napi_null) {
        if (argument.optional) return {};
        refuse(env, argument, value);
    }

    // The list with what `read` gives for each element; nullopt where the value is no array.
    const auto list_of = [&](auto list, auto read) -> std::optional<c10::IValue> {
        const bool is_array = each(env, value, [&](napi_value element) {
            const auto found = read(env, element);
            if (!found) refuse(env, argument, element);
            list.push_back(*found);
        });
        return is_array ? std::optional<c10::IValue>(std::move(list)) : std::nullopt;
    };

    switch (argument.kind) {
        case Kind::tensors: {
            if (argument.optional_element) {
                c10::List<std::optional<at::Tensor>> list;
                const bool taken = each(env, value, [&](napi_value element) {
                    const napi_valuetype kind = type_of(env, element);
                    if (kind == napi_null || kind == napi_undefined) list.push_back(std::nullopt);
                    else list.push_back(tensor_argument(context, argument, element));
                });
                if (taken) return list;
            } else {
                c10::List<at::Tensor> list;
                if (each(env, value,
                         [&](napi_value element) { list.push_back(tensor_argument(context, argument, element)); }))
                    return list;
            }
            break;
        }
        case Kind::integers:
            if (const auto list = list_of(c10::List<int64_t>(), integer_in)) return *list;
            if (const auto number = argument.repeat > 0 ? integer_in(env, value) : std::nullopt)
                return c10::List<int64_t>(std::vector<int64_t>(argument.repeat, *number));
            break;
        case Kind::numbers:
            if (const auto list = list_of(c10::List<double>(), number_in)) return *list;
            break;
        case Kind::booleans:
            if (const auto list = list_of(c10::List<bool>(), flag_in)) return *list;
            break;
        case Kind::scalars:
            if (const auto list = list_of(c10::impl::GenericList(c10::NumberType::get()), scalar_in)) return *list;
            break;
        case Kind::text:
            if (type == napi_string) return text_of(env, value);
            break;
        case Kind::dtype:
            if (type == napi_string) return dtype_of(text_of(env, value));
            break;
        case Kind::layout:
            if (type == napi_string) return layout_of(text_of(env, value));
            break;
        case Kind::memory_format:
            if (type == napi_string) return memory_format_of(text_of(env, value));
            break;
        case Kind::device:
            if (type == napi_string) return open_device(text_of(env, value));
            break;
        default: break;
    }
    refuse(env, argument, value);
}

napi_value result_of(Context& context, const Result& result, c10::IValue value) {
    const napi_env env = context.env;
    if (value.isTensor()) {
        at::Tensor tensor = std::move(value).toTensor();
        return tensor.defined() ? number(env, context.handles.add(std::move(tensor))) : null(env);
    }
    if (value.isNone()) return null(env);
    if (result.kind == Kind::dtype) return text(env, name_of(static_cast<c10::ScalarType>(value.toInt())));
    if (value.isInt()) return integer(env, value.toInt());
    if (value.isDouble()) return number(env, value.toDouble());
    if (value.isBool()) return boolean(env, value.toBool());
    if (value.isString()) return text(env, value.toStringRef());
    if (value.isDevice()) return text(env, value.toDevice().str());
    if (value.isList()) {
        const auto list = value.toList();
        const napi_value values = array(env, list.size());
        for (size_t i = 0; i < list.size(); i++)
            set(env, values, static_cast<uint32_t>(i), result_of(context, result, list.get(i)));
        return values;
    }
    throw std::invalid_argument("it returns " + value.tagKind() + ", which cannot be converted to JavaScript");
}

}  // namespace terse
