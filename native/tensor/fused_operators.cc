#include "fused_operators.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "fused_kernels.h"
#include "linear.h"
#include "openmp.h"
#include "torch.h"

namespace terse {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t rows_per_block = 64;       // fixed, so that γ's gradient does not depend on the number of threads
constexpr int64_t grain = int64_t{1} << 15;  // elements: with fewer per thread, a second thread costs more than it
                                             // saves

bool is_supported(const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat && x.layout() == at::kStrided;
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& given, const at::Tensor& weight, double ε) {
        const at::Tensor x = given.contiguous(), γ = weight.contiguous(), y = at::empty_like(x);
        const int64_t d = γ.size(0), rows = x.numel() / d;
        const at::Tensor r = at::empty({rows}, x.options());
        parallel_for(rows, std::max<int64_t>(1, grain / d),
                     [&, from = x.const_data_ptr<float>(), γ = γ.const_data_ptr<float>(),
                      to = y.mutable_data_ptr<float>(), r = r.mutable_data_ptr<float>()](int64_t begin, int64_t end) {
                         rms_norm_rows(from + begin * d, γ, to + begin * d, r + begin, end - begin, d,
                                       static_cast<float>(ε));
                     });
        context->save_for_backward({x, γ, r});
        return y;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor &x = saved[0], &γ = saved[1], &r = saved[2];
        const at::Tensor dy = gradients[0].contiguous(), dx = at::empty_like(x);
        const int64_t d = γ.size(0), rows = r.size(0), blocks = (rows + rows_per_block - 1) / rows_per_block;
        const at::Tensor shares = at::empty({blocks, d}, x.options());
        parallel_for(blocks, std::max<int64_t>(1, grain / (d * rows_per_block)),
                     [&, dy = dy.const_data_ptr<float>(), x = x.const_data_ptr<float>(), γ = γ.const_data_ptr<float>(),
                      r = r.const_data_ptr<float>(), dx = dx.mutable_data_ptr<float>(),
                      dγ = shares.mutable_data_ptr<float>()](int64_t begin, int64_t end) {
                         for (int64_t block = begin; block < end; block++) {
                             const int64_t row = block * rows_per_block, at = row * d,
                                           n = std::min(rows_per_block, rows - row);
                             rms_norm_backward_rows(dy + at, x + at, γ, r + row, dx + at, dγ + block * d, n, d);
                         }
                     });
        return {dx, shares.sum(0), at::Tensor()};
    }
};

struct SwiGlu : torch::autograd::Function<SwiGlu> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up) {
        const at::Tensor g = gate.contiguous(), u = up.contiguous(), y = at::empty_like(g);
        parallel_for(
            g.numel(), grain,
            [g = g.const_data_ptr<float>(), u = u.const_data_ptr<float>(), y = y.mutable_data_ptr<float>()](
                int64_t begin, int64_t end) { swiglu_elements(g + begin, u + begin, y + begin, end - begin); });
        context->save_for_backward({g, u});
        return y;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor &g = saved[0], &u = saved[1];
        const at::Tensor dy = gradients[0].contiguous(), dg = at::empty_like(g), du = at::empty_like(u);
        parallel_for(
            g.numel(), grain,
            [dy = dy.const_data_ptr<float>(), g = g.const_data_ptr<float>(), u = u.const_data_ptr<float>(),
             dg = dg.mutable_data_ptr<float>(), du = du.mutable_data_ptr<float>()](int64_t begin, int64_t end) {
                swiglu_backward_elements(dy + begin, g + begin, u + begin, dg + begin, du + begin, end - begin);
            });
        return {dg, du};
    }
};

// Under autocast libtorch's lists know the operators below but not these two. Its norm of f32 stays f32, as the fused
// one does; what is in a lower type takes ATen's operators, each of which the lists know.
at::Tensor rms_norm(const at::Tensor& x, const std::optional<at::Tensor>& weight, std::optional<double> ε) {
    const bool fused = is_supported(x) && weight && weight->defined() && is_supported(*weight) && weight->dim() == 1 &&
                       x.dim() > 0 && x.size(-1) == weight->size(0) && x.numel() > 0;
    if (fused) return RmsNorm::apply(x, *weight, ε.value_or(std::numeric_limits<float>::epsilon()));
    const int64_t width = weight && weight->defined() ? weight->numel() : x.size(-1);
    return at::rms_norm(x, {width}, weight, ε);
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
    if (is_supported(gate) && is_supported(up) && gate.sizes() == up.sizes()) return SwiGlu::apply(gate, up);
    return at::silu(gate).mul(up);
}

// Whether no element is NaN or infinite, in one pass at the speed of memory: aminmax takes several times as long.
// Integers are always finite.
bool all_finite(const at::Tensor& given) {
    if (!given.is_floating_point()) return true;
    const auto type = given.scalar_type();
    const bool known = type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
    if (!known || !given.is_cpu()) return given.isfinite().all().item<bool>();
    const at::Tensor x = given.contiguous();
    std::atomic<bool> finite{true};
    parallel_for(x.numel(), grain, [&, from = x.const_data_ptr()](int64_t begin, int64_t end) {
        const auto holds = [&] {
            if (type == at::kFloat)
                return all_finite_32(static_cast<const uint32_t*>(from) + begin, end - begin, 0x7F800000);
            if (type == at::kDouble)
                return all_finite_64(static_cast<const uint64_t*>(from) + begin, end - begin, 0x7FF0000000000000);
            return all_finite_16(static_cast<const uint16_t*>(from) + begin, end - begin,
                                 type == at::kHalf ? 0x7C00 : 0x7F80);
        };
        if (!holds()) finite = false;
    });
    return finite;
}

}  // namespace

void register_fused_operators() {
    static std::once_flag once;
    std::call_once(once, [] {
        // Another copy of this addon in the process may have registered them.
        if (c10::Dispatcher::singleton().findSchema({"terse::rms_norm", ""})) return;
        static torch::Library library(torch::Library::FRAGMENT, "terse", std::nullopt, __FILE__, __LINE__);
        library.def("rms_norm(Tensor x, Tensor? weight, float? eps) -> Tensor", rms_norm);
        library.def("swiglu(Tensor gate, Tensor up) -> Tensor", swiglu);
        library.def("all_finite(Tensor x) -> bool", all_finite);
        library.def("linear(Tensor x, Tensor weight, Tensor? bias, bool? by_onednn=None) -> Tensor", linear);
    });
}

}  // namespace terse
