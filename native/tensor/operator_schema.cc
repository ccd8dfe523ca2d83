#include "operator_schema.h"

#include <stdexcept>

#include "libtorch.h"

namespace terse {
namespace {

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
                return kind_of(*element.castRaw<c10::OptionalType>()->getElementType()) == Kind::tensor ? Kind::tensors
                                                                                                        : Kind::other;
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
        argument.optional_element = type->castRaw<c10::ListType>()->getElementType()->kind() ==
                                    c10::TypeKind::OptionalType;
    argument.repeat = schema.N().value_or(0);
    argument.name = schema.name();
    if (schema.default_value()) {
        argument.has_default = true;
        argument.fallback = *schema.default_value();
    }
    return argument;
}

// Index of the argument that a result is, by the alias annotation, or −1: add_.Tensor(Tensor(a!) self, …) ->
// Tensor(a!).
int returned_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
    const c10::AliasInfo* alias = result.alias_info();
    if (!alias || !alias->isWrite()) return -1;
    for (size_t i = 0; i < schema.arguments().size(); i++) {
        const c10::AliasInfo* other = schema.arguments()[i].alias_info();
        if (other && other->isWrite() && other->beforeSets() == alias->beforeSets()) return static_cast<int>(i);
    }
    return -1;
}

}  // namespace

Operator look_up(const std::string& name) {
    const size_t dot = name.find('.');
    const auto handle = c10::Dispatcher::singleton().findSchema(
        {name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
    if (!handle)
        throw std::invalid_argument("libtorch " + loaded_version() +
                                    " has no such operator; write the name as aten::name or aten::name.overload");
    const c10::FunctionSchema& schema = handle->schema();
    if (schema.arguments().size() > max_arguments)
        throw std::invalid_argument("operators of more than 32 arguments are not supported");
    Operator op{name, *handle, {}, {}};
    for (const auto& argument : schema.arguments()) op.arguments.push_back(argument_of(argument));
    for (const auto& result : schema.returns()) {
        const Kind kind = kind_of(*result.real_type());
        op.results.push_back({kind, returned_argument(schema, result)});
    }
    return op;
}

}  // namespace terse
