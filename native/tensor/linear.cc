#include "linear.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "gradient_hook.h"
#include "torch.h"

namespace terse {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t large = int64_t{1} << 21;  // multiplications: fewer take as long as a call of oneDNN

using Product = at::Tensor(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, c10::string_view then,
                           c10::List<std::optional<at::Scalar>> scalars, std::optional<c10::string_view> algorithm);

// nullopt where libtorch has no oneDNN.
const std::optional<c10::TypedOperatorHandle<Product>>& onednn() {
    static const std::optional<c10::TypedOperatorHandle<Product>> found = [] {
        const auto schema = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
        return schema && at::hasMKLDNN() ? std::optional(schema->typed<Product>()) : std::nullopt;
    }();
    return found;
}

// a bᵀ + bias:  a (m, k)   b (n, k)   → (m, n)
at::Tensor product(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& bias = std::nullopt) {
    return onednn()->call(a, b, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

// By the processor's name, and not by a measurement: a run that goes on after a restart, or is repeated, must have the
// same bits, and a busy machine measures something else once in some hundred times.
bool is_faster() {
#if defined(__x86_64__)
    static const bool zen_5_or_later = [] {
        unsigned a, b, c, d;
        if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx || d != signature_AMD_edx) return false;
        __get_cpuid(1, &a, &b, &c, &d);
        return (a >> 8 & 15) + (a >> 20 & 255) >= 26;  // base and extended family
    }();
    return zen_5_or_later;
#else
    return false;
#endif
}

// The weight in the type of x. A frozen one may be held in another type, to save memory.
at::Tensor in_type_of(const at::Tensor& x, const at::Tensor& weight) { return weight.to(x.scalar_type()); }

// Its backward writes the weight's gradient to where the optimizer reads it. A frozen weight needs no x for that, and
// one that is held in another type is converted again, so that no converted one is kept until then.
struct Linear : torch::autograd::Function<Linear> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, bool by_onednn) {
        context->save_for_backward({weight.requires_grad() ? x : at::Tensor(), weight});
        context->saved_data["shape"] = x.sizes();
        context->saved_data["bias"] = bias.has_value();
        context->saved_data["by_onednn"] = by_onednn;
        const at::Tensor w = in_type_of(x, weight);
        if (!by_onednn) return at::linear(x, w, bias);
        std::vector<int64_t> shape = x.sizes().vec();
        shape.back() = weight.size(0);
        return product(x.reshape({-1, w.size(1)}), w, bias).view(shape);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], dy = gradients[0].reshape({-1, weight.size(0)});
        const bool by_onednn = context->saved_data["by_onednn"].toBool();
        at::Tensor dx, dw, db;
        if (context->needs_input_grad(0)) {
            const at::Tensor w = in_type_of(dy, weight);
            dx = (by_onednn ? product(dy, w.t()) : dy.mm(w)).view(context->saved_data["shape"].toIntVector());
        }
        if (context->needs_input_grad(1)) {
            const at::Tensor rows = x.reshape({-1, weight.size(1)});
            if (!by_onednn) dw = take_place(weight);
            if (by_onednn) dw = product(dy.t(), rows.t());
            else if (dw.defined()) at::mm_out(dw, dy.t(), rows);
            else dw = dy.t().mm(rows);
        }
        if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) db = dy.sum(0);
        return {dx, dw, db, at::Tensor()};
    }
};

bool is_f32_on_the_cpu(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kFloat && x.layout() == at::kStrided; }

// Frozen, and held in another type than that of x.
bool is_held(const at::Tensor& x, const at::Tensor& weight) {
    return !weight.requires_grad() && weight.scalar_type() != x.scalar_type() && weight.is_floating_point() && x.is_floating_point() && weight.device() == x.device();
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, std::optional<bool> by_onednn) {
    // Autocast casts the arguments of aten::linear.
    if (at::autocast::is_autocast_enabled(x.device().type())) return at::linear(x, weight, bias);
    const bool held = is_held(x, weight);
    const bool fits = (!bias || (bias->scalar_type() == x.scalar_type() && bias->dim() == 1 && bias->size(0) == weight.size(0))) && weight.dim() == 2 && x.dim() > 0 &&
                      x.size(-1) == weight.size(1) && x.numel() > 0 && weight.numel() > 0;
    const bool on_the_cpu = is_f32_on_the_cpu(x) && (held || is_f32_on_the_cpu(weight)) && (!bias || is_f32_on_the_cpu(*bias));
    if (!fits || (!held && !on_the_cpu)) return at::linear(x, held ? in_type_of(x, weight) : weight, bias);
    const bool is_large = by_onednn ? *by_onednn : x.numel() * weight.size(0) >= large && is_faster();
    return Linear::apply(x, weight, bias, on_the_cpu && onednn() && is_large);
}

}  // namespace terse
