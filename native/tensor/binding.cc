// The module: what libtorch needs before its first use, and the functions of exports.h.
#include "backward_thread.h"
#include "exports.h"
#include "fused_operators.h"
#include "libtorch.h"
#include "tensor_memory.h"

namespace terse {

namespace {

napi_value initialise(napi_env env, napi_value exports) {
    auto context = std::make_unique<Context>(env);
    Context* data = context.get();
    return guard(
        *data, [] { return std::string("@terse/native-tensor"); },
        [&] {
            check_libraries();
            register_fused_operators();
            keep_freed_memory();
            use_own_allocator();
            context->backward_thread = std::make_unique<BackwardThread>(*context);
            for (const std::span<const Export> family :
                 {operator_exports(), tensor_exports(), autograd_exports(), library_exports()})
                for (const Export& entry : family) {
                    napi_value function;
                    check(env,
                          napi_create_function(env, entry.name, NAPI_AUTO_LENGTH, entry.function, data, &function));
                    set(env, exports, entry.name, function);
                }
            // The thread must end before the environment does, and the tensors must be freed before libtorch is
            // unloaded.
            check(env, napi_add_env_cleanup_hook(
                           env, [](void* given) { delete static_cast<Context*>(given); }, context.release()));
            return exports;
        });
}

}  // namespace
}  // namespace terse

NAPI_MODULE_INIT() { return terse::initialise(env, exports); }
