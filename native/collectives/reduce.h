// into ← into ∘ from, element by element, for ∘ in sum, prod, min, max, and sum again for mean, which is divided by the number of
// ranks where an element has been added up. Integers wrap. f16 and bf16 are added in f32 and rounded to
// nearest even after every step. min and max hand a NaN on.
#pragma once
#include "operation.h"

namespace terse::collectives {

using Reduce = void (*)(void* into, const void* from, size_t count);

// nullptr when this reduction has no meaning for this type (bool; a mean of integers).
Reduce find_reduce(Reduction reduction, DType dtype);

// What is left to do with complete sums: x ← x / ranks for a mean, nothing otherwise.
void complete(Reduction reduction, DType dtype, void* x, size_t count, int ranks);

}  // namespace terse::collectives
