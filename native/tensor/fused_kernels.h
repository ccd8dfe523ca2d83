// The kernels of the fused operators: one pass over memory each. Sums use sixteen SIMD lanes on every processor, and
// a·b + c is never one instruction, so all instruction sets give the same bits.
#pragma once
#include <cstdint>

namespace terse {

// y = γ x r,  r = 1/√(mean(x²) + ε)      x, y (rows, d)   γ (d)   r (rows)
void rms_norm_rows(const float* x, const float* γ, float* y, float* r, int64_t rows, int64_t d, float ε);

// With t = γ dy:  dx = r (t − x r² mean(t x)),  dγ = Σ_rows dy x r
// dy, x, dx (rows, d)   r (rows)   dγ (d), overwritten
void rms_norm_backward_rows(const float* dy, const float* x, const float* γ, const float* r, float* dx, float* dγ,
                            int64_t rows, int64_t d);

// y = g σ(g) u,  σ(g) = 1/(1 + e⁻ᵍ)      all (n)
void swiglu_elements(const float* g, const float* u, float* y, int64_t n);

// du = dy g σ(g),  dg = dy u σ(g) (1 + g (1 − σ(g)))      all (n)
void swiglu_backward_elements(const float* dy, const float* g, const float* u, float* dg, float* du, int64_t n);

// Whether no element is NaN or infinite: whether none has an exponent of all ones, as in the word `exponent`. Elements
// of 16, 32 or 64 bits; x (n)
bool all_finite_16(const uint16_t* x, int64_t n, uint16_t exponent);
bool all_finite_32(const uint32_t* x, int64_t n, uint32_t exponent);
bool all_finite_64(const uint64_t* x, int64_t n, uint64_t exponent);

}  // namespace terse
