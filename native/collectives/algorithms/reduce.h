// into ← into ∘ from, element by element, where ∘ is sum, prod, min or max. A mean is a sum that `complete` divides by
// the number of ranks. Integers wrap around. f16 and bf16 are computed in f32 and rounded to nearest even after every
// step. min and max keep a NaN.
#pragma once
#include "communicator/operation.h"

namespace terse::collectives {

using Reduce = void (*)(void* into, const void* from, size_t count);

// nullptr when this reduction has no meaning for this type (bool; a mean of integers).
Reduce find_reduce(Reduction reduction, DType dtype);

// Finishes complete sums: x ← x / ranks for a mean, nothing for other reductions.
void complete(Reduction reduction, DType dtype, void* x, size_t count, int ranks);

// into ← (1/ranks) Σ parts, added in f64 in their order and rounded once. Returns the first element that is not finite,
// or `count`. `into` may be one of the parts.
size_t average(float* into, const float* const* parts, size_t ranks, size_t count);

}  // namespace terse::collectives
