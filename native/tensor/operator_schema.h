// The schema of an ATen operator, in the form that the binding needs to convert arguments and results.
#pragma once
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
    c10::OperatorHandle handle;
    std::vector<Argument> arguments;
    std::vector<Result> results;
};

// Throws where libtorch has no operator of this name, such as "aten::add.Tensor".
Operator look_up(const std::string& name);

}  // namespace terse
