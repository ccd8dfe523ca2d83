// Conversions between JavaScript values and libtorch's IValues, by an operator's schema.
#pragma once
#include "context.h"
#include "operator_schema.h"

namespace terse {

// The argument as an IValue. Undefined becomes the schema's default; null becomes None. Throws TypeError or
// DisposedError.
c10::IValue value_of(Context& context, const Argument& argument, napi_value value);
// The IValue for an argument that was not given. Throws TypeError if it is required.
c10::IValue default_of(const Argument& argument);
napi_value result_of(Context& context, const Result& result, c10::IValue value);

}  // namespace terse
