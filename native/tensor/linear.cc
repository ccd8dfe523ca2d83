#include "linear.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

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

using Product = at::Tensor(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                           c10::string_view then, c10::List<std::optional<at::Scalar>> scalars,
                           std::optional<c10::string_view> algorithm);

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
        if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx ||
            d != signature_AMD_edx)
            return false;
        __get_cpuid(1, &a, &b, &c, &d);
        return (a >> 8 & 15) + (a >> 20 & 255) >= 26;  // base and extended family
    }();
    return zen_5_or_later;
#else
    return false;
#endif
}

bool is_f32_on_the_cpu(const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat && x.layout() == at::kStrided;
}

// The weight in the type of x. A frozen one may be held in another type, to save memory.
at::Tensor in_type_of(const at::Tensor& x, const at::Tensor& weight) { return weight.to(x.scalar_type()); }

constexpr int64_t converted_at_once = int64_t{1} << 20;  // elements: the head of a small model has thirty times as many

// Calls f(first row, rows in the type of x) for all rows of the weight: for parts, where they are converted. f keeps
// none of them.
template <typename F>
void by_rows(const at::Tensor& x, const at::Tensor& weight, F f) {
    const int64_t height = weight.size(0);
    const int64_t most = weight.scalar_type() == x.scalar_type()
                             ? height
                             : std::max<int64_t>(1, converted_at_once / weight.size(1));
    for (int64_t first = 0; first < height; first += most)
        f(first, in_type_of(x, weight.narrow(0, first, std::min(most, height - first))));
}

// Its backward writes the weight's gradient to where the optimizer reads it. A frozen weight needs no x for that, and
// one that is held in another type is converted again, so that no converted one is kept until then.
struct Linear : torch::autograd::Function<Linear> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias, bool by_onednn) {
        context->save_for_backward({weight.requires_grad() ? x : at::Tensor(), weight});
        context->saved_data["shape"] = x.sizes();
        context->saved_data["bias"] = bias.has_value();
        context->saved_data["by_onednn"] = by_onednn;
        std::vector<at::Tensor> parts;  // (…, rows)
        by_rows(x, weight, [&](int64_t first, const at::Tensor& w) {
            const std::optional<at::Tensor> b = bias ? std::optional(bias->narrow(0, first, w.size(0))) : std::nullopt;
            if (!by_onednn) return parts.push_back(at::linear(x, w, b));
            std::vector<int64_t> shape = x.sizes().vec();
            shape.back() = w.size(0);
            parts.push_back(product(x.reshape({-1, w.size(1)}), w, b).view(shape));
        });
        return parts.size() == 1 ? parts[0] : at::cat(parts, -1);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], dy = gradients[0].reshape({-1, weight.size(0)});
        const bool by_onednn = context->saved_data["by_onednn"].toBool();
        at::Tensor dx, dw, db;
        if (context->needs_input_grad(0)) {
            by_rows(dy, weight, [&](int64_t first, const at::Tensor& w) {
                const at::Tensor own = w.size(0) == dy.size(1) ? dy : dy.narrow(1, first, w.size(0)).contiguous();
                const at::Tensor part = by_onednn ? product(own, w.t()) : own.mm(w);
                dx = dx.defined() ? dx.add_(part) : part;
            });
            dx = dx.view(context->saved_data["shape"].toIntVector());
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

// Frozen, and held in another type than that of x.
bool is_held(const at::Tensor& x, const at::Tensor& weight) {
    return !weight.requires_grad() && weight.scalar_type() != x.scalar_type() && weight.is_floating_point() &&
           x.is_floating_point() && weight.device() == x.device();
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                  std::optional<bool> by_onednn) {
    // Autocast casts the arguments of aten::linear.
    if (at::autocast::is_autocast_enabled(x.device().type())) return at::linear(x, weight, bias);
    const bool held = is_held(x, weight);
    const bool fits = (!bias || (bias->scalar_type() == x.scalar_type() && bias->dim() == 1 &&
                                 bias->size(0) == weight.size(0))) &&
                      weight.dim() == 2 && x.dim() > 0 && x.size(-1) == weight.size(1) && x.numel() > 0 &&
                      weight.numel() > 0;
    const bool on_the_cpu = is_f32_on_the_cpu(x) && (held || is_f32_on_the_cpu(weight)) &&
                            (!bias || is_f32_on_the_cpu(*bias));
    if (!fits || (!held && !on_the_cpu)) return at::linear(x, held ? in_type_of(x, weight) : weight, bias);
    const bool is_large = by_onednn ? *by_onednn : x.numel() * weight.size(0) >= large && is_faster();
    return Linear::apply(x, weight, bias, on_the_cpu && onednn() && is_large);
}

}  // namespace terse
