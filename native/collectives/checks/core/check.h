#pragma once
#include <cstdint>
#include <random>
#include <vector>

#include "terse/buffer_view.h"

namespace terse::collectives::check {

using Random = std::mt19937_64;
inline uint64_t below(Random& random, uint64_t n) { return random() % n; }

inline BufferView view_of(std::vector<float>& values) { return {values.data(), values.size(), DType::f32, true}; }

// Ends the process with the round's seed and `what` unless it holds.
void require(bool holds, const char* what);

// One world: its ranks run operations and end. Every result is checked.
void check_world(uint64_t seed);

// One operation that receives changed headers: it succeeds, or throws a Failure that names rank 1, and touches only its
// own memory. True if it succeeded.
bool check_headers(uint64_t seed);

}  // namespace terse::collectives::check
