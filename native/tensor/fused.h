// Operators of our own beside ATen's: formulas of transformers that libtorch has only as several operators on the CPU.
#pragma once

namespace terse {

//   terse::rms_norm(Tensor x, Tensor? weight, float? eps) -> Tensor      x / √(mean(x²) + ε) ⊙ γ over the last dimension
//   terse::swiglu(Tensor gate, Tensor up) -> Tensor                      gate σ(gate) ⊙ up
// One pass over memory for f32 on the CPU, with gradients; anything else goes to ATen's operators. Once for the process.
void register_fused_operators();

}  // namespace terse
