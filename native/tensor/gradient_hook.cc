#include "gradient_hook.h"

#include <mutex>
#include <utility>

#include "backward_thread.h"

namespace terse {
namespace {

// Guards what every hook has, and the gradient of its leaf: the JavaScript thread gives places away, the backward
// thread gives them back. JavaScript may take itself off a hook while backward runs.
std::mutex places;

}  // namespace

void GradientHook::operator()(const torch::autograd::Variable& leaf) {
    std::shared_ptr<Channel> listener;
    Channel::Message message{.kind = Channel::Message::Kind::ready};
    {
        std::lock_guard lock(places);
        if (place.defined()) {
            const at::NoGradGuard guard;
            if (leaf.grad().const_data_ptr() != place.const_data_ptr()) place.copy_(leaf.grad());
            leaf.mutable_grad() = std::exchange(place, at::Tensor());
        }
        listener = channel;
        message.token = token;
    }
    if (listener) listener->send(std::move(message));
}

GradientHook* hook_of(const at::Tensor& leaf) {
    return dynamic_cast<GradientHook*>(torch::autograd::impl::post_acc_grad_hooks(leaf).get());
}

GradientHook& hook_on(const at::Tensor& leaf) {
    if (!hook_of(leaf)) torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<GradientHook>());
    return *hook_of(leaf);
}

void tell_when_ready(const at::Tensor& leaf, std::shared_ptr<Channel> channel, double token) {
    GradientHook& hook = hook_on(leaf);
    std::lock_guard lock(places);
    hook.channel = std::move(channel);
    hook.token = token;
}

void zero_unreached(const std::vector<at::Tensor>& leaves) {
    const at::NoGradGuard guard;
    for (const at::Tensor& leaf : leaves) {
        std::lock_guard lock(places);
        at::Tensor& place = hook_on(leaf).place;
        if (!place.defined()) continue;
        place.zero_();
        leaf.mutable_grad() = std::exchange(place, at::Tensor());
    }
}

void replace_gradient(const at::Tensor& leaf) {
    std::lock_guard lock(places);
    GradientHook& hook = hook_on(leaf);
    if (leaf.grad().defined()) hook.place = std::exchange(leaf.mutable_grad(), at::Tensor());
    if (!hook.place.defined())
        throw std::invalid_argument("replaceGradients: a leaf has no gradient, whose memory the next one is to take");
    hook.taken = false;
}

at::Tensor take_place(const at::Tensor& leaf) {
    if (!leaf.is_leaf()) return {};
    std::lock_guard lock(places);
    GradientHook* hook = hook_of(leaf);
    if (!hook || !hook->place.defined() || std::exchange(hook->taken, true)) return {};
    return hook->place.detach();  // a tensor of its own: autograd copies a gradient that somebody else has too
}

}  // namespace terse
