// The schema of an ATen operator, in the form that the binding needs to convert arguments and results.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "torch.h"

namespace terse {

constexpr size_t max_arguments = 32;

enum class Kind : uint8_t {
    tensor,
    tensors,
    scalar,
    integer,
    number,
    boolean,
    text,
    integers,
    numbers,
    booleans,
    scalars,
    dtype,
    layout,
    memory_format,
    device,
    generator,
    other
};

struct Argument {
    Kind kind;
    bool optional;          // null may be given
    bool optional_element;  // Tensor?[]
    bool has_default;
    int32_t repeat;  // int[2]: a single number is repeated 2 times; 0: a list is required
    c10::IValue fallback;
    std::string name;
};

struct Result {
    Kind kind;
    int argument;  // index of the argument that is returned, as by in-place operators; −1: a new value
};

struct Operator {
    std::string name;
    std::optional<c10::OperatorHandle> handle;  // looked up at the first call
    std::vector<Argument> arguments;
    std::vector<Result> results;
};

// Looks up `op.name` in libtorch and fills in the rest. Throws where libtorch has no such operator.
void look_up(Operator& op);

}  // namespace terse
