#include "backward_thread.h"
#include "checkpoint.h"
#include "exports.h"

namespace terse {

namespace {

void set_requires_grad(const Call& call) { call.tensor().requires_grad_(call.flag(1)); }

napi_value grad(const Call& call) { return call.handle(call.tensor().grad()); }

void set_grad(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    at::Tensor gradient = call.tensor_or_none(1, "the gradient");
    if (gradient.defined() && (gradient.sizes() != tensor.sizes() || gradient.scalar_type() != tensor.scalar_type() ||
                               gradient.device() != tensor.device()))
        throw RangeError("a gradient " + describe(gradient) + " does not fit a tensor " + describe(tensor) +
                         "; give one of the same shape, dtype and device");
    tensor.mutable_grad() = std::move(gradient);
}

// Returns the previous setting.
napi_value set_grad_enabled(const Call& call) {
    const bool wanted = call.flag(0), before = c10::GradMode::is_enabled();
    c10::GradMode::set_enabled(wanted);
    return boolean(call.env, before);
}

napi_value backward(const Call& call) {
    at::Tensor gradient = call.tensor_or_none(1, "the gradient");
    return call.context.backward_thread->backward(call.tensor(), std::move(gradient), call.flag(2));
}

napi_value is_under_way(const Call& call) {
    return boolean(call.env, call.context.backward_thread->is_under_way(call.tensor()));
}

// Waits for the running backward. Drops those that have not started; their promises never settle.
void stop(const Call& call) { call.context.backward_thread->stop(); }

void add_gradient_hook(const Call& call) {
    call.context.backward_thread->add_gradient_hook(call.tensor(), call.number(1));
}

void remove_gradient_hook(const Call& call) { call.context.backward_thread->remove_gradient_hook(call.tensor()); }

void on_gradient_ready(const Call& call) { call.context.backward_thread->on_gradient_ready(call.values[0]); }

// The tensors of the array that is the first argument.
std::vector<at::Tensor> tensors_of(const Call& call, const char* what) {
    uint32_t count;
    check(call.env, napi_get_array_length(call.env, call.values[0], &count));
    std::vector<at::Tensor> tensors;
    for (uint32_t i = 0; i < count; i++) {
        napi_value handle;
        check(call.env, napi_get_element(call.env, call.values[0], i, &handle));
        tensors.push_back(tensor_of(call.context, handle, what));
    }
    return tensors;
}

void replace_gradients(const Call& call) {
    call.context.backward_thread->replace_gradients(tensors_of(call, "a leaf"));
}

// beginCheckpoint(inputs, token) returns the tensors to compute the part from.
napi_value begin_part(const Call& call) {
    std::vector<at::Tensor> inputs = tensors_of(call, "an input of the checkpoint");
    std::vector<at::Tensor> leaves = begin_checkpoint(call.context, call.context.backward_thread->channel(),
                                                      std::move(inputs), call.number(1));
    const napi_value handles = array(call.env, leaves.size());
    for (uint32_t i = 0; i < leaves.size(); i++) set(call.env, handles, i, call.handle(std::move(leaves[i])));
    return handles;
}

// endCheckpoint(result or null) returns the result for autograd, or null where it needs no gradient.
napi_value end_part(const Call& call) {
    return call.handle(end_checkpoint(call.context, call.tensor_or_none(0, "the result of the checkpoint")));
}

void recomputed(const Call& call) { call.context.backward_thread->recomputed(call.tensor()); }

void on_recompute(const Call& call) { call.context.backward_thread->on_recompute(call.values[0]); }

}  // namespace

std::span<const Export> autograd_exports() {
    static const Export all[] = {
        TERSE_EXPORT("setRequiresGrad", set_requires_grad),
        TERSE_EXPORT("grad", grad),
        TERSE_EXPORT("setGrad", set_grad),
        TERSE_EXPORT("setGradEnabled", set_grad_enabled),
        TERSE_EXPORT("backward", backward),
        TERSE_EXPORT("backwardIsUnderWay", is_under_way),
        TERSE_EXPORT("stop", stop),
        TERSE_EXPORT("addGradientHook", add_gradient_hook),
        TERSE_EXPORT("removeGradientHook", remove_gradient_hook),
        TERSE_EXPORT("onGradientReady", on_gradient_ready),
        TERSE_EXPORT("replaceGradients", replace_gradients),
        TERSE_EXPORT("beginCheckpoint", begin_part),
        TERSE_EXPORT("endCheckpoint", end_part),
        TERSE_EXPORT("recomputed", recomputed),
        TERSE_EXPORT("onRecompute", on_recompute),
    };
    return all;
}

}  // namespace terse
