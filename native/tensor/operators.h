// Calls any operator of libtorch by the name of its schema, with boxed values and autograd.
#pragma once
#include "context.h"

namespace terse {

// find(name) returns an id. libtorch is asked for the operator at the first call.
napi_value find_operator(napi_env env, napi_callback_info info);
// call(id, ...arguments in schema order). Tensors are handles; undefined means the schema's default; null means None.
napi_value call_operator(napi_env env, napi_callback_info info);
// results(id) lists for each result "tensor", "tensors", "value", or the index of the argument that is returned.
napi_value operator_results(napi_env env, napi_callback_info info);

}  // namespace terse
