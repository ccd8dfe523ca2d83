#include "exports.h"

namespace terse {
namespace {

Operator& operator_of(Context& context, napi_value id) {
    uint32_t index;
    if (napi_get_value_uint32(context.env, id, &index) != napi_ok || index >= context.operators.size())
        throw TypeError("expected the number that find() returned");
    return *context.operators[index];
}

// "aten::mm(self: f32[2, 3], mat2: f32[4, 5])": the operator and its tensors, for error messages.
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
                if (napi_get_element(context.env, values[i], k, &element) == napi_ok)
                    what += (k ? ", " : "") + one(element);
            }
            what = "[" + what + (length > 8 ? ", …]" : "]");
        }
        if (what == "none") continue;
        tensors += (tensors.empty() ? "" : ", ") + argument.name + ": " + what;
    }
    return op.name + (tensors.empty() ? "" : "(" + tensors + ")");
}

// A resize of a retained storage fails when libtorch has changed the tensor's shape already, so the shape is restored.
void call_with_retained(Context& context, const Operator& op, std::vector<c10::IValue>& stack) {
    struct Shape {
        at::Tensor tensor;
        std::vector<int64_t> sizes, strides;
    };
    std::vector<Shape> shapes;
    if (!context.retained.empty())
        for (const c10::IValue& value : stack)
            if (value.isTensor() && value.toTensor().defined() && context.retained.contains(value.toTensor()))
                shapes.push_back({value.toTensor(), value.toTensor().sizes().vec(), value.toTensor().strides().vec()});
    try {
        op.handle.callBoxed(stack);
    } catch (...) {
        for (const Shape& shape : shapes)
            shape.tensor.unsafeGetTensorImpl()->set_sizes_and_strides(shape.sizes, shape.strides);
        throw;
    }
}

// find(name) returns an id.
napi_value find(napi_env env, napi_callback_info info) {
    Context* context;
    napi_value value;
    size_t count = 1;
    napi_get_cb_info(env, info, &count, &value, nullptr, reinterpret_cast<void**>(&context));
    std::string name;
    return guard(
        *context, [&] { return name.empty() ? "find" : name; },
        [&] {
            name = text_of(env, value);
            context->operators.push_back(std::make_unique<Operator>(look_up(name)));
            return number(env, static_cast<double>(context->operators.size() - 1));
        });
}

// results(id) lists for each result "tensor", "tensors", "value", or the index of the argument that is returned.
napi_value results(const Call& call) {
    const std::vector<Result>& all = operator_of(call.context, call.values[0]).results;
    const napi_value list = array(call.env, all.size());
    for (size_t i = 0; i < all.size(); i++) {
        const auto [kind, argument] = all[i];
        const char* word = kind == Kind::tensor ? "tensor" : kind == Kind::tensors ? "tensors" : "value";
        set(call.env, list, static_cast<uint32_t>(i),
            argument >= 0 ? number(call.env, argument) : text(call.env, word));
    }
    return list;
}

// call(id, ...arguments in schema order). Tensors are handles; undefined means the schema's default; null means None.
napi_value call_operator(napi_env env, napi_callback_info info) {
    Context* context;
    napi_value values[max_arguments + 1];
    size_t count = max_arguments + 1;
    napi_get_cb_info(env, info, &count, values, nullptr, reinterpret_cast<void**>(&context));
    Operator* op = nullptr;
    return guard(
        *context, [&] { return op ? describe_call(*context, *op, values + 1, count > 0 ? count - 1 : 0) : "call"; },
        [&]() -> napi_value {
            op = &operator_of(*context, values[0]);
            const size_t given = count - 1;
            for (size_t i = op->arguments.size(); i < given && i < max_arguments; i++)
                if (type_of(env, values[i + 1]) != napi_undefined)
                    throw TypeError("takes " + std::to_string(op->arguments.size()) + " arguments, got " +
                                    std::to_string(given));

            std::vector<c10::IValue> stack = std::move(context->spare_stack);
            stack.clear();
            for (size_t i = 0; i < op->arguments.size(); i++) {
                const Argument& argument = op->arguments[i];
                stack.push_back(i < given ? value_of(*context, argument, values[i + 1]) : default_of(argument));
            }

            call_with_retained(*context, *op, stack);

            const auto give = [&](size_t i) {
                // A result that is one of the arguments is returned as undefined: the caller has it already.
                return op->results[i].argument >= 0 ? undefined(env)
                                                    : result_of(*context, op->results[i], std::move(stack[i]));
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

}  // namespace

std::span<const Export> operator_exports() {
    static const Export all[] = {
        {"find", find},
        {"call", call_operator},
        TERSE_EXPORT("results", results),
    };
    return all;
}

}  // namespace terse
