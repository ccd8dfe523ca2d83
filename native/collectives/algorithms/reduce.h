// into ← into ∘ from, element by element, where ∘ is sum, prod, min or max. A mean is a sum that `complete` divides by the number
// of ranks. Integers wrap around. f16 and bf16 are computed in f32 and rounded to nearest even after every step. min and max keep a
// NaN.
#pragma once
#include "communicator/operation.h"

namespace terse::collectives {

using Reduce = void (*)(void* into, const void* from, size_t count);

// nullptr when this reduction has no meaning for this type (bool; a mean of integers).
Reduce find_reduce(Reduction reduction, DType dtype);

// Finishes complete sums: x ← x / ranks for a mean, nothing for other reductions.
void complete(Reduction reduction, DType dtype, void* x, size_t count, int ranks);

}  // namespace terse::collectives
