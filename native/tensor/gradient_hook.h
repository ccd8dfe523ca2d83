// What happens when backward has completed the gradient of a leaf, and where that gradient is written.
#pragma once
#include <memory>

#include "torch.h"

namespace terse {

class Channel;

// Each leaf has its own. The backward thread calls it.
struct GradientHook : torch::autograd::PostAccumulateGradHook {
    void operator()(const torch::autograd::Variable& leaf) override;

    std::shared_ptr<Channel> channel;  // null where nobody waits for the gradient
    double token = 0;
    at::Tensor place;    // what the next gradient is to be in; undefined where gradients are added
    bool taken = false;  // an operator of this backward has written its part of the gradient to the place
};

// Null where the leaf has none.
GradientHook* hook_of(const at::Tensor& leaf);
// Makes one where the leaf has none.
GradientHook& hook_on(const at::Tensor& leaf);

// The channel gets the token when the gradient of the leaf is complete; nobody does where it is null.
void tell_when_ready(const at::Tensor& leaf, std::shared_ptr<Channel> channel, double token);

// Leaves that backward has not reached have a gradient of 0.
void zero_unreached(const std::vector<at::Tensor>& leaves);
// The leaf's next gradient takes the memory of this one. Throws std::invalid_argument if it has none.
void replace_gradient(const at::Tensor& leaf);

// Where an operator is to write the gradient of `leaf` that it returns, which saves the copy; undefined if it is to
// allocate memory for it. Only the first operator of a backward gets the place. autograd adds the parts of others to it
// out of place.
at::Tensor take_place(const at::Tensor& leaf);

}  // namespace terse
