// Everything that belongs to one Node environment (the main thread, or one worker), and the way errors leave it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "handles.h"
#include "node.h"

namespace terse {

struct Operator;
class Compute;

struct Context {
    explicit Context(napi_env env);
    ~Context();

    napi_env env;
    Handles handles;
    std::vector<std::unique_ptr<Operator>> operators;
    std::vector<c10::IValue> spare_stack;  // one call at a time; a nested one takes its own
    std::unique_ptr<Compute> compute;
    napi_ref tensor_error = nullptr;    // class (message, cause)
    napi_ref disposed_error = nullptr;  // class (message)
};

struct Failure {
    enum class Kind { tensor, disposed, type, range } kind;
    std::string message, trace;
};

// The exception being handled, with `where` before its sentence. Rethrows Pending.
Failure current_failure(const std::string& where);
napi_value error_of(Context& context, const Failure& failure);
const char* name_of(c10::ScalarType dtype);
c10::ScalarType dtype_of(const std::string& name);
// f32[2, 3], with the device when it is not the CPU.
std::string describe(const at::Tensor& tensor);
const at::Tensor& tensor_of(Context& context, napi_value value, const char* what);

// Runs the body of an exported function; `where` says which one when it fails.
template <class Where, class Body>
napi_value guard(Context& context, Where&& where, Body&& body) {
    try {
        return body();
    } catch (const Pending&) {
        return nullptr;
    } catch (...) {
        try {
            napi_throw(context.env, error_of(context, current_failure(where())));
        } catch (...) {
            napi_throw_error(context.env, nullptr, "the error itself could not be described");
        }
        return nullptr;
    }
}

}  // namespace terse
