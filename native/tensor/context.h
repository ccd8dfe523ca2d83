// The state of one Node environment (the main thread, or one worker), and how C++ exceptions become its JavaScript
// errors.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "handles.h"
#include "napi_calls.h"
#include "retained_storages.h"

namespace terse {

struct OpenCheckpoint;
struct Operator;
class BackwardThread;

struct Context {
    explicit Context(napi_env env);
    ~Context();

    napi_env env;
    Handles handles;
    RetainedStorages retained;
    std::vector<std::unique_ptr<Operator>> operators;
    std::vector<c10::IValue> spare_stack;  // the last call's, to save an allocation; a nested call finds it empty
    std::vector<std::unique_ptr<OpenCheckpoint>> checkpoints;  // whose first forward pass is under way, the innermost
                                                               // last
    std::unique_ptr<BackwardThread> backward_thread;
    napi_ref tensor_error = nullptr;    // class (message, cause)
    napi_ref disposed_error = nullptr;  // class (message)
};

struct Failure {
    enum class Kind { tensor, disposed, type, range } kind;
    std::string message, trace;
};

// The exception that is being handled; its message starts with `where`.
Failure current_failure(const std::string& where);
napi_value error_of(Context& context, const Failure& failure);
const char* name_of(c10::ScalarType dtype);
c10::ScalarType dtype_of(const std::string& name);
// "f32[2, 3]", with the device if it is not the CPU.
std::string describe(const at::Tensor& tensor);
// The tensor of a handle. Throws TypeError for any other value, and DisposedError; both messages start with `what`.
const at::Tensor& tensor_of(Context& context, napi_value value, const char* what);

// Runs the body of an exported function and turns C++ exceptions into JavaScript ones; `where()` gives the start of the
// message.
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
            napi_throw_error(context.env, nullptr, "an error occurred whose message could not be made");
        }
        return nullptr;
    }
}

}  // namespace terse
