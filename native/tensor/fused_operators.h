// Fused operators for transformers. On the CPU, libtorch computes these formulas with several operators.
#pragma once

namespace terse {

//   terse::rms_norm(Tensor x, Tensor? weight, float? eps) -> Tensor    x / √(mean(x²) + ε) ⊙ γ over the last dimension
//   terse::swiglu(Tensor gate, Tensor up) -> Tensor                    gate σ(gate) ⊙ up
//   terse::linear(Tensor x, Tensor weight, Tensor? bias, bool? by_onednn=None) -> Tensor     linear.h
// For f32 on the CPU each of the first two is one pass over memory forward and one backward. Other tensors use ATen's
// operators. Registers once per process.
void register_fused_operators();

}  // namespace terse
