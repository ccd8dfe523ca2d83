// Any ATen operator by the name of its schema, with boxed values: one function serves them all, autograd included.
#pragma once
#include "context.h"

namespace terse {

// find(name: string): number. The name is remembered; it is looked up in libtorch at the first call.
napi_value find_operator(napi_env env, napi_callback_info info);
// call(id, ...arguments in schema order). A tensor is its handle; undefined takes the schema's default; null is None.
napi_value call_operator(napi_env env, napi_callback_info info);
// results(id): for each result "tensor", "tensors", "value", or the index of the argument that is returned.
napi_value operator_results(napi_env env, napi_callback_info info);

}  // namespace terse
