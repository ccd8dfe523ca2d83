// y = x Wᵀ + b with whichever of libtorch's two matrix multiplications is faster on this processor.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace terse {

// x (…, in)   weight (out, in)   bias (out)   → (…, out)
//
// libtorch multiplies f32 matrices with its BLAS library, but convolves with oneDNN. MKL does not use all of a
// processor that is not Intel's: on AMD's Zen 5 oneDNN is more than twice as fast (220 GFLOP/s on one thread, MKL 96),
// on Zen 4 by a twentieth (107 and 101). So oneDNN is taken from Zen 5 on. Both round differently; the choice depends
// on the processor alone, so that a run has the same bits each time. `by_onednn` takes one of them. Everything that is
// not f32 on the CPU, small products, and all under autocast take aten::linear.
//
// A weight that needs no gradient may be held in another type than x. It is converted for each product, in backward
// once more, so that memory never has all of them twice.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                  std::optional<bool> by_onednn);

}  // namespace terse
