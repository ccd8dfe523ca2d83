#include "operators.h"

#include <cmath>
#include <optional>

#include "compute.h"
#include "library.h"

namespace terse {

enum class Kind : uint8_t { tensor, tensors, scalar, integer, number, boolean, text, integers, numbers, booleans, scalars, dtype, layout, memory_format, device, generator, other };

struct Argument {
    Kind kind;
    bool optional;          // null may be given
    bool optional_element;  // Tensor?[]
    bool has_default;
    int32_t repeat;  // int[2]: one number stands for two of them; 0: it does not
    c10::IValue fallback;
    std::string name;
};

struct Result {
    Kind kind;
    int argument;  // this argument is returned, as by in-place operators; −1: a new value
};

struct Operator {
    std::string name;
    std::optional<c10::OperatorHandle> handle;  // looked up at the first call
    std::vector<Argument> arguments;
    std::vector<Result> results;
};

namespace {

constexpr size_t most_arguments = 32;

Kind kind_of(const c10::Type& type) {
    switch (type.kind()) {
        case c10::TypeKind::TensorType: return Kind::tensor;
        case c10::TypeKind::NumberType: return Kind::scalar;
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType: return Kind::integer;
        case c10::TypeKind::FloatType:
        case c10::TypeKind::SymFloatType: return Kind::number;
        case c10::TypeKind::BoolType:
        case c10::TypeKind::SymBoolType: return Kind::boolean;
        case c10::TypeKind::StringType: return Kind::text;
        case c10::TypeKind::ScalarTypeType: return Kind::dtype;
        case c10::TypeKind::LayoutType: return Kind::layout;
        case c10::TypeKind::MemoryFormatType: return Kind::memory_format;
        case c10::TypeKind::DeviceObjType: return Kind::device;
        case c10::TypeKind::GeneratorType: return Kind::generator;
        case c10::TypeKind::ListType: {
            const auto& element = *type.castRaw<c10::ListType>()->getElementType();
            if (element.kind() == c10::TypeKind::OptionalType)
                return kind_of(*element.castRaw<c10::OptionalType>()->getElementType()) == Kind::tensor ? Kind::tensors : Kind::other;
            switch (kind_of(element)) {
                case Kind::tensor: return Kind::tensors;
                case Kind::integer: return Kind::integers;
                case Kind::number: return Kind::numbers;
                case Kind::boolean: return Kind::booleans;
                case Kind::scalar: return Kind::scalars;
                default: return Kind::other;
            }
        }
        default: return Kind::other;
    }
}

Argument argument_of(const c10::Argument& schema) {
    Argument argument{};
    const c10::Type* type = schema.real_type().get();
    if (type->kind() == c10::TypeKind::OptionalType) {
        argument.optional = true;
        type = type->castRaw<c10::OptionalType>()->getElementType().get();
    }
    argument.kind = kind_of(*type);
    if (type->kind() == c10::TypeKind::ListType)
        argument.optional_element = type->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::OptionalType;
    argument.repeat = schema.N().value_or(0);
    argument.name = schema.name();
    if (schema.default_value()) {
        argument.has_default = true;
        argument.fallback = *schema.default_value();
    }
    return argument;
}

// Which argument a result is, by the alias annotation: add_.Tensor(Tensor(a!) self, …) -> Tensor(a!).
int returned_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
    const c10::AliasInfo* alias = result.alias_info();
    if (!alias || !alias->isWrite()) return -1;
    for (size_t i = 0; i < schema.arguments().size(); i++) {
        const c10::AliasInfo* other = schema.arguments()[i].alias_info();
        if (other && other->isWrite() && other->beforeSets() == alias->beforeSets()) return static_cast<int>(i);
    }
    return -1;
}

void look_up(Operator& op) {
    const size_t dot = op.name.find('.');
    auto handle = c10::Dispatcher::singleton().findSchema({op.name.substr(0, dot), dot == std::string::npos ? "" : op.name.substr(dot + 1)});
    if (!handle) throw std::invalid_argument("libtorch " + loaded_version() + " has no such operator; the schema is written aten::name or aten::name.overload");
    const c10::FunctionSchema& schema = handle->schema();
    if (schema.arguments().size() > most_arguments) throw std::invalid_argument("operators of more than 32 arguments are not supported");
    for (const auto& argument : schema.arguments()) op.arguments.push_back(argument_of(argument));
    for (const auto& result : schema.returns()) {
        const Kind kind = kind_of(*result.real_type());
        op.results.push_back({kind, returned_argument(schema, result)});
    }
    op.handle = handle;
}

Operator& operator_of(Context& context, napi_value id) {
    uint32_t index;
    if (napi_get_value_uint32(context.env, id, &index) != napi_ok || index >= context.operators.size()) throw TypeError("expected the number that find() returned");
    return *context.operators[index];
}

const char* expectation(Kind kind) {
    switch (kind) {
        case Kind::tensor: return "a tensor";
        case Kind::tensors: return "an array of tensors";
        case Kind::scalar: return "a number";
        case Kind::integer: return "a whole number";
        case Kind::number: return "a number";
        case Kind::boolean: return "true or false";
        case Kind::text: return "a string";
        case Kind::integers: return "an array of whole numbers";
        case Kind::numbers: return "an array of numbers";
        case Kind::booleans: return "an array of booleans";
        case Kind::scalars: return "an array of numbers";
        case Kind::dtype: return "a dtype (\"f32\", \"bf16\", …)";
        case Kind::layout: return "a layout (\"strided\")";
        case Kind::memory_format: return "a memory format (\"contiguous\", \"preserve\", \"channels_last\", \"channels_last_3d\")";
        case Kind::device: return "a device (\"cpu\", \"cuda:0\")";
        case Kind::generator: return "null: the default generator is the only one";
        default: return "a kind of value that JavaScript cannot give";
    }
}

[[noreturn]] void refuse(napi_env env, const Argument& argument, napi_value value) {
    static const char* names[] = {"undefined", "null", "a boolean", "a number", "a string", "a symbol", "an object", "a function", "an external", "a bigint"};
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

bool whole_number(napi_env env, napi_value value, int64_t& result) {
    double number;
    if (napi_get_value_double(env, value, &number) == napi_ok) {
        if (!(number >= -9223372036854775808.0 && number < 9223372036854775808.0)) return false;
        result = static_cast<int64_t>(number);
        return static_cast<double>(result) == number;
    }
    bool lossless = false;
    return napi_get_value_bigint_int64(env, value, &result, &lossless) == napi_ok && lossless;
}

// JavaScript has one kind of number: whole ones are integers to libtorch, so that i64 + 1 stays i64; −0 is not whole.
std::optional<c10::Scalar> scalar_of(napi_env env, napi_value value) {
    double number;
    if (napi_get_value_double(env, value, &number) == napi_ok) {
        if (std::abs(number) <= 9007199254740991.0 && number == static_cast<double>(static_cast<int64_t>(number)) && !(number == 0 && std::signbit(number)))
            return c10::Scalar(static_cast<int64_t>(number));
        return c10::Scalar(number);
    }
    bool flag;
    if (napi_get_value_bool(env, value, &flag) == napi_ok) return c10::Scalar(flag);
    int64_t big;
    bool lossless = false;
    if (napi_get_value_bigint_int64(env, value, &big, &lossless) == napi_ok && lossless) return c10::Scalar(big);
    return std::nullopt;
}

const at::Tensor& tensor_argument(Context& context, const Argument& argument, napi_value value, double handle) {
    const at::Tensor* tensor = context.handles.find(handle);
    if (!tensor && !Handles::plausible(handle)) refuse(context.env, argument, value);
    if (!tensor)
        throw DisposedError("the tensor given as \"" + argument.name + "\" has been disposed, or the scope it was born in has ended; keep() it, or return it from the scope");
    return *tensor;
}

const at::Tensor& tensor_argument(Context& context, const Argument& argument, napi_value value) {
    double handle;
    if (napi_get_value_double(context.env, value, &handle) != napi_ok) refuse(context.env, argument, value);
    return tensor_argument(context, argument, value, handle);
}

// Calls `take(element)` for each element of an array; false when it is no array.
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
    throw TypeError("unknown layout \"" + name + "\"; tensors here are \"strided\"");
}

c10::MemoryFormat memory_format_of(const std::string& name) {
    if (name == "contiguous") return c10::MemoryFormat::Contiguous;
    if (name == "preserve") return c10::MemoryFormat::Preserve;
    if (name == "channels_last") return c10::MemoryFormat::ChannelsLast;
    if (name == "channels_last_3d") return c10::MemoryFormat::ChannelsLast3d;
    throw TypeError("unknown memory format \"" + name + "\"; known: contiguous, preserve, channels_last, channels_last_3d");
}

c10::IValue value_of(Context& context, const Argument& argument, napi_value value) {
    const napi_env env = context.env;
    switch (argument.kind) {
        case Kind::tensor: {
            double handle;
            if (napi_get_value_double(env, value, &handle) == napi_ok) return tensor_argument(context, argument, value, handle);
            break;
        }
        case Kind::scalar:
            if (auto scalar = scalar_of(env, value)) return *scalar;
            break;
        case Kind::integer: {
            int64_t number;
            if (whole_number(env, value, number)) return number;
            break;
        }
        case Kind::number: {
            double number;
            if (napi_get_value_double(env, value, &number) == napi_ok) return number;
            break;
        }
        case Kind::boolean: {
            bool flag;
            if (napi_get_value_bool(env, value, &flag) == napi_ok) return flag;
            break;
        }
        default: break;
    }

    const napi_valuetype type = type_of(env, value);
    if (type == napi_undefined) {
        if (argument.has_default) return argument.fallback;
        if (argument.optional) return {};
        throw TypeError("argument \"" + argument.name + "\" is missing: expected " + expectation(argument.kind));
    }
    if (type == napi_null) {
        if (argument.optional) return {};
        refuse(env, argument, value);
    }

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
                if (each(env, value, [&](napi_value element) { list.push_back(tensor_argument(context, argument, element)); })) return list;
            }
            break;
        }
        case Kind::integers: {
            c10::List<int64_t> list;
            int64_t number;
            const bool taken = each(env, value, [&](napi_value element) {
                if (!whole_number(env, element, number)) refuse(env, argument, element);
                list.push_back(number);
            });
            if (taken) return list;
            if (argument.repeat > 0 && whole_number(env, value, number)) {
                for (int32_t i = 0; i < argument.repeat; i++) list.push_back(number);
                return list;
            }
            break;
        }
        case Kind::numbers: {
            c10::List<double> list;
            double number;
            const bool taken = each(env, value, [&](napi_value element) {
                if (napi_get_value_double(env, element, &number) != napi_ok) refuse(env, argument, element);
                list.push_back(number);
            });
            if (taken) return list;
            break;
        }
        case Kind::booleans: {
            c10::List<bool> list;
            bool flag;
            const bool taken = each(env, value, [&](napi_value element) {
                if (napi_get_value_bool(env, element, &flag) != napi_ok) refuse(env, argument, element);
                list.push_back(flag);
            });
            if (taken) return list;
            break;
        }
        case Kind::scalars: {
            c10::impl::GenericList list(c10::NumberType::get());
            const bool taken = each(env, value, [&](napi_value element) {
                auto scalar = scalar_of(env, element);
                if (!scalar) refuse(env, argument, element);
                list.push_back(*scalar);
            });
            if (taken) return list;
            break;
        }
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
        for (size_t i = 0; i < list.size(); i++) set(env, values, static_cast<uint32_t>(i), result_of(context, result, list.get(i)));
        return values;
    }
    throw std::invalid_argument("it returns " + value.tagKind() + ", which has no form in JavaScript");
}

// aten::mm(self: f32[2, 3], mat2: f32[4, 5]): only the tensors, which is where mistakes are.
std::string describe_call(Context& context, const Operator& op, const napi_value* values, size_t count) {
    std::string tensors;
    for (size_t i = 0; i < op.arguments.size() && i < count; i++) {
        const Argument& argument = op.arguments[i];
        if (argument.kind != Kind::tensor && argument.kind != Kind::tensors) continue;
        const auto one = [&](napi_value value) -> std::string {
            double handle;
            if (napi_get_value_double(context.env, value, &handle) != napi_ok) return "none";
            const at::Tensor* tensor = context.handles.find(handle);
            return tensor ? describe(*tensor) : "disposed";
        };
        std::string what;
        if (argument.kind == Kind::tensor) {
            what = one(values[i]);
        } else {
            uint32_t length = 0;
            bool is_array = false;
            napi_is_array(context.env, values[i], &is_array);
            if (is_array) napi_get_array_length(context.env, values[i], &length);
            for (uint32_t k = 0; k < length && k < 8; k++) {
                napi_value element;
                if (napi_get_element(context.env, values[i], k, &element) == napi_ok) what += (k ? ", " : "") + one(element);
            }
            what = "[" + what + (length > 8 ? ", …]" : "]");
        }
        if (what == "none") continue;
        tensors += (tensors.empty() ? "" : ", ") + argument.name + ": " + what;
    }
    return op.name + (tensors.empty() ? "" : "(" + tensors + ")");
}

}  // namespace

Context::Context(napi_env env) : env(env) {}
Context::~Context() = default;

napi_value find_operator(napi_env env, napi_callback_info info) {
    Context* context;
    napi_value name;
    size_t count = 1;
    napi_get_cb_info(env, info, &count, &name, nullptr, reinterpret_cast<void**>(&context));
    return guard(*context, [] { return std::string("find"); }, [&] {
        auto op = std::make_unique<Operator>();
        op->name = text_of(env, name);
        context->operators.push_back(std::move(op));
        return number(env, static_cast<double>(context->operators.size() - 1));
    });
}

napi_value operator_results(napi_env env, napi_callback_info info) {
    Context* context;
    napi_value id;
    size_t count = 1;
    napi_get_cb_info(env, info, &count, &id, nullptr, reinterpret_cast<void**>(&context));
    Operator* op = nullptr;
    return guard(*context, [&] { return op ? op->name : "results"; }, [&] {
        op = &operator_of(*context, id);
        if (!op->handle) look_up(*op);
        const napi_value results = array(env, op->results.size());
        for (size_t i = 0; i < op->results.size(); i++) {
            const Result& result = op->results[i];
            const char* kind = result.kind == Kind::tensor ? "tensor" : result.kind == Kind::tensors ? "tensors" : "value";
            set(env, results, static_cast<uint32_t>(i), result.argument >= 0 ? number(env, result.argument) : text(env, kind));
        }
        return results;
    });
}

napi_value call_operator(napi_env env, napi_callback_info info) {
    Context* context;
    napi_value values[most_arguments + 1];
    size_t count = most_arguments + 1;
    napi_get_cb_info(env, info, &count, values, nullptr, reinterpret_cast<void**>(&context));
    Operator* op = nullptr;
    return guard(*context, [&] { return op ? describe_call(*context, *op, values + 1, count > 0 ? count - 1 : 0) : "call"; }, [&]() -> napi_value {
        op = &operator_of(*context, values[0]);
        if (!op->handle) look_up(*op);
        const size_t given = count - 1;
        for (size_t i = op->arguments.size(); i < given && i < most_arguments; i++)
            if (type_of(env, values[i + 1]) != napi_undefined)
                throw TypeError("takes " + std::to_string(op->arguments.size()) + " arguments, got " + std::to_string(given));

        std::vector<c10::IValue> stack = std::move(context->spare_stack);
        stack.clear();
        for (size_t i = 0; i < op->arguments.size(); i++) {
            const Argument& argument = op->arguments[i];
            if (i < given) stack.push_back(value_of(*context, argument, values[i + 1]));
            else if (argument.has_default) stack.push_back(argument.fallback);
            else if (argument.optional) stack.emplace_back();
            else throw TypeError("argument \"" + argument.name + "\" is missing: expected " + expectation(argument.kind));
        }

        op->handle->callBoxed(stack);

        const auto give = [&](size_t i) {
            // What is returned because it was written to is the caller's own tensor already.
            return op->results[i].argument >= 0 ? undefined(env) : result_of(*context, op->results[i], std::move(stack[i]));
        };
        napi_value result;
        if (op->results.empty()) {
            result = undefined(env);
        } else if (op->results.size() == 1) {
            result = give(0);
        } else {
            result = array(env, op->results.size());
            for (size_t i = 0; i < op->results.size(); i++) set(env, result, static_cast<uint32_t>(i), give(i));
        }
        stack.clear();
        context->spare_stack = std::move(stack);
        return result;
    });
}

}  // namespace terse
