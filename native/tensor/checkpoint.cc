#include "checkpoint.h"

#include <ATen/SequenceNumber.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <unordered_set>

#include "backward_thread.h"
#include "openmp.h"

namespace terse {

using torch::autograd::AccumulateGrad;
using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

namespace {

template <typename N, typename... Arguments>
auto make_node(Arguments&&... arguments) {
    if constexpr (std::is_same_v<NodePointer, std::shared_ptr<Node>>)
        return std::make_shared<N>(std::forward<Arguments>(arguments)...);
    else return c10::make_intrusive<N>(std::forward<Arguments>(arguments)...);
}

at::Generator generator_of(const c10::Device& device) {
    return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

at::Tensor state_of(const c10::Device& device) {
    at::Generator generator = generator_of(device);
    std::lock_guard lock(generator.mutex());
    return generator.get_state();
}

void set_state(const c10::Device& device, const at::Tensor& state) {
    at::Generator generator = generator_of(device);
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
}

ForwardState::Autocast autocast_of(c10::DeviceType type) {
    return {at::autocast::is_autocast_enabled(type), at::autocast::get_autocast_dtype(type)};
}

void set_autocast(c10::DeviceType type, ForwardState::Autocast autocast) {
    at::autocast::set_autocast_dtype(type, autocast.dtype);
    at::autocast::set_autocast_enabled(type, autocast.enabled);
}

// The leaves, besides `inputs`, that `result` is computed from, in a fixed order. A step before `first` is not the
// part's.
std::vector<NodePointer> parameters_of(const at::Tensor& result, const std::vector<at::Tensor>& inputs,
                                       uint64_t first) {
    std::unordered_set<const Node*> seen;
    for (const at::Tensor& input : inputs)
        if (input.requires_grad()) seen.insert(torch::autograd::impl::gradient_edge(input).function.get());
    std::vector<NodePointer> left{torch::autograd::impl::gradient_edge(result).function}, found;
    while (!left.empty()) {
        const NodePointer node = std::move(left.back());
        left.pop_back();
        if (!node || !seen.insert(node.get()).second) continue;
        if (dynamic_cast<AccumulateGrad*>(node.get())) {
            found.push_back(node);
            continue;
        }
        if (node->sequence_nr() < first)
            throw RangeError(
                "the function uses a tensor that requires a gradient and was computed outside; pass it as one of the "
                "inputs");
        for (const Edge& edge : node->next_edges()) left.push_back(edge.function);
    }
    return found;
}

}  // namespace

ForwardState::ForwardState(const std::vector<at::Tensor>& inputs)
    : cpu(autocast_of(c10::kCPU)), cuda(autocast_of(c10::kCUDA)), cache(at::autocast::is_autocast_cache_enabled()) {
    generators.emplace_back(c10::Device(c10::kCPU), state_of(c10::kCPU));
    for (const at::Tensor& input : inputs) {
        const auto same = [&](const auto& generator) { return generator.first == input.device(); };
        if (input.is_cuda() && std::none_of(generators.begin(), generators.end(), same))
            generators.emplace_back(input.device(), state_of(input.device()));
    }
}

ForwardState ForwardState::enter() const {
    ForwardState before({});
    for (const auto& [device, state] : generators) {
        if (!device.is_cpu()) before.generators.emplace_back(device, state_of(device));
        set_state(device, state);
    }
    set_autocast(c10::kCPU, cpu);
    set_autocast(c10::kCUDA, cuda);
    at::autocast::set_autocast_cache_enabled(cache);
    return before;
}

class CheckpointNode : public Node {
public:
    CheckpointNode(std::shared_ptr<Channel> channel, double token, const std::vector<at::Tensor>& inputs)
        : state(inputs), channel_(std::move(channel)), token_(token) {
        state.cache = false;  // a copy from outside would be a step of both graphs
        for (const at::Tensor& input : inputs) {
            inputs_.emplace_back(input, false);
            requires_.push_back(input.requires_grad());
        }
    }
    ~CheckpointNode() override { channel_->send({.kind = Channel::Message::Kind::forget, .token = token_}); }

    std::string name() const override { return "TerseCheckpoint"; }

    void release_variables() override {
        std::lock_guard lock(mutex_);
        for (SavedVariable& input : inputs_) input.reset_data();
    }

    variable_list apply(variable_list&& gradients) override {
        std::vector<at::Tensor> leaves;
        {
            std::lock_guard lock(mutex_);
            for (size_t i = 0; i < inputs_.size(); i++)
                leaves.push_back(inputs_[i].unpack().detach().requires_grad_(requires_[i]));
        }
        variable_list results(num_outputs());
        if (!gradients[0].defined()) return results;
        const at::Tensor again = channel_->recompute(token_, leaves, state);

        std::vector<NodePointer> known;
        variable_list wanted;
        for (size_t i = 0; i < leaves.size(); i++)
            if (requires_[i]) wanted.push_back(leaves[i]);
        for (size_t i = wanted.size(); i < num_outputs(); i++) {
            known.push_back(next_edge(i).function);
            wanted.push_back(static_cast<AccumulateGrad*>(known.back().get())->variable);
        }
        if (!again.requires_grad() || again.sizes() != gradients[0].sizes())
            throw RangeError("computed again, a checkpointed function gave " + describe(again) +
                             ", and its gradient is " + describe(gradients[0]) +
                             "; it must compute the same each time");
        for (const NodePointer& parameter : parameters_of(again, leaves, 0))
            if (std::find(known.begin(), known.end(), parameter) == known.end())
                throw RangeError(
                    "computed again, a checkpointed function used another parameter than before; it must compute the "
                    "same each time");
        return torch::autograd::grad({again}, wanted, {gradients[0]}, /*retain_graph=*/false, /*create_graph=*/false,
                                     /*allow_unused=*/true);
    }

    ForwardState state;

private:
    std::shared_ptr<Channel> channel_;
    double token_;
    std::mutex mutex_;
    std::vector<SavedVariable> inputs_;
    std::vector<bool> requires_;
};

std::vector<at::Tensor> begin_checkpoint(Context& context, std::shared_ptr<Channel> channel,
                                         std::vector<at::Tensor> inputs, double token) {
    // Its number in the order of steps comes before those of what is inside, so it is made first.
    auto node = make_node<CheckpointNode>(std::move(channel), token, inputs);
    torch::autograd::edge_list edges;
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& input : inputs) {
        if (input.requires_grad()) edges.push_back(torch::autograd::impl::gradient_edge(input));
        leaves.push_back(input.detach().requires_grad_(input.requires_grad()));
    }
    node->set_next_edges(std::move(edges));
    ForwardState before({});
    at::autocast::set_autocast_cache_enabled(false);
    context.checkpoints.push_back(std::make_unique<OpenCheckpoint>(
        OpenCheckpoint{std::move(node), leaves, at::sequence_number::peek(), std::move(before)}));
    return leaves;
}

at::Tensor end_checkpoint(Context& context, const at::Tensor& result) {
    const std::unique_ptr<OpenCheckpoint> part = std::move(context.checkpoints.back());
    context.checkpoints.pop_back();
    at::autocast::set_autocast_cache_enabled(part->before.cache);
    if (!result.defined() || !result.requires_grad()) return {};
    for (NodePointer& parameter : parameters_of(result, part->leaves, part->first))
        part->node->add_next_edge(Edge(std::move(parameter), 0));
    at::Tensor detached = result.detach();
    torch::autograd::set_history(detached, part->node);
    return detached;
}

}  // namespace terse
