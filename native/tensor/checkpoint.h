// Activation checkpointing, Chen et al. 2016, https://arxiv.org/abs/1604.06174: a part of the forward pass keeps its
// inputs only. Backward asks the JavaScript thread to compute the part again, with the random numbers and the autocast
// of the first time.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "context.h"
#include "torch.h"

namespace terse {

class Channel;

// Owns a node of autograd: a shared_ptr in some versions of libtorch (2.11), an intrusive_ptr in others (2.13).
using NodePointer = decltype(torch::autograd::Edge::function);

// What a forward pass depends on besides its arguments: settings of the JavaScript thread, and the generators' states.
struct ForwardState {
    explicit ForwardState(const std::vector<at::Tensor>& inputs);
    // Makes this state the current one, and returns the one that was.
    ForwardState enter() const;

    struct Autocast {
        bool enabled;
        c10::ScalarType dtype;
    };
    std::vector<std::pair<c10::Device, at::Tensor>> generators;  // the CPU's, and those of the inputs' devices
    Autocast cpu, cuda;
    bool cache;  // whether autocast may reuse a parameter's copy in the lower type
};

// One part that backward needs again. The backward thread waits for it, and the JavaScript thread computes it.
struct Recomputation {
    double token;                    // of the JavaScript function
    std::vector<at::Tensor> inputs;  // leaves
    const ForwardState* state;
    at::Tensor result;
    std::string failure;
    bool ended = false;  // under the channel's mutex, like what is above
};

// A part whose first forward pass is under way. Parts may be inside each other.
struct OpenCheckpoint {
    NodePointer node;
    std::vector<at::Tensor> leaves;  // the inputs, without what computed them
    uint64_t first;                  // sequence number: nodes before it are not the part's
    ForwardState before;
};

// Begins a part: what is computed until `end_checkpoint` is computed from the leaves that this returns.
std::vector<at::Tensor> begin_checkpoint(Context& context, std::shared_ptr<Channel> channel,
                                         std::vector<at::Tensor> inputs, double token);
// Ends it. Returns the result with the part as its one step for autograd, or an undefined tensor where nothing requires
// a gradient.
// An undefined result: the part has failed.
at::Tensor end_checkpoint(Context& context, const at::Tensor& result);

}  // namespace terse
