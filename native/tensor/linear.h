// y = x Wᵀ + b with whichever of libtorch's two matrix multiplications is faster on this processor.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace terse {

// x (…, in)   weight (out, in)   bias (out)   → (…, out)
//
// libtorch multiplies f32 matrices with its BLAS library, but convolves with oneDNN. Where the BLAS is MKL and the processor is not Intel's,
// oneDNN can be more than twice as fast (Zen 5: 220 GFLOP/s on one thread, MKL 96). The first large product of the process measures both,
// and oneDNN is taken if it needs less than three quarters of the time, so that processors on which both are as fast always take the same one.
// `by_onednn` takes one of them without measuring. Everything that is not f32 on the CPU, small products, and all under autocast take aten::linear.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, std::optional<bool> by_onednn);

}  // namespace terse
