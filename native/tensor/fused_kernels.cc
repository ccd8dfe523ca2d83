#include "fused_kernels.h"

#include <cmath>
#include <cstring>

// Each function is compiled for several instruction sets; the dynamic loader takes the best one that the processor has.
#if defined(__x86_64__)
#define TERSE_FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TERSE_FOR_EACH_PROCESSOR
#endif
#define TERSE_INLINE static inline __attribute__((always_inline))

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed only between inlined functions

namespace terse {
namespace {

constexpr int64_t width = 16;  // SIMD lanes
typedef float Vector __attribute__((vector_size(4 * width)));

TERSE_INLINE Vector load(const float* from) {
    Vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

TERSE_INLINE void store(float* to, Vector x) { std::memcpy(to, &x, sizeof x); }

// The last n < 16 elements of a row, then zeros.
TERSE_INLINE Vector load_some(const float* from, int64_t n) {
    Vector x{};
    std::memcpy(&x, from, sizeof(float) * n);
    return x;
}

TERSE_INLINE void store_some(float* to, Vector x, int64_t n) { std::memcpy(to, &x, sizeof(float) * n); }

TERSE_INLINE float sum(Vector x) {
    float half[width];
    store(half, x);
    for (int64_t n = width / 2; n > 0; n /= 2)
        for (int64_t i = 0; i < n; i++) half[i] += half[i + n];
    return half[0];
}

// e^x = 2ⁿ eʳ, n the nearest integer to x / ln 2. The error of eʳ's Taylor series to r⁷ is below half a unit in the
// last place for |r| ≤ ln 2 / 2.
TERSE_INLINE float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;  // outside of these 2ⁿ is not a normal number
    x = x > 88.0f ? 88.0f : x;
    const float round = 12582912.0f;  // 1.5 · 2²³: adding it rounds x to an integer, which is in the last bits of the
                                      // sum
    const float shifted = x * 1.44269504f + round;
    const float n = shifted - round;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts; n times the first part is exact
    const float e = ((((((r * (1.0f / 5040) + 1.0f / 720) * r + 1.0f / 120) * r + 1.0f / 24) * r + 1.0f / 6) * r +
                      1.0f / 2) *
                         r +
                     1.0f) *
                        r +
                    1.0f;
    uint32_t exponent;
    std::memcpy(&exponent, &shifted, sizeof exponent);
    exponent = (exponent - 0x4B400000 + 127) << 23;
    float scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    return e * scale;
}

TERSE_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

template <typename Word>
TERSE_INLINE bool all_finite(const Word* x, int64_t n, Word exponent) {
    typedef Word Words __attribute__((vector_size(64)));
    constexpr int64_t lanes = 64 / sizeof(Word), unrolled = 4 * lanes;
    int64_t i = 0;
    Words found[4] = {};  // all ones where an element is not finite
    for (; i + unrolled <= n; i += unrolled) {
        Words words[4];
        std::memcpy(words, x + i, sizeof words);
        for (int j = 0; j < 4; j++) found[j] |= (Words)((words[j] & exponent) == exponent);
    }
    const Words any = (found[0] | found[1]) | (found[2] | found[3]);
    bool finite = true;
    for (int64_t lane = 0; lane < lanes; lane++) finite &= any[lane] == 0;
    for (; i < n; i++) finite &= (x[i] & exponent) != exponent;
    return finite;
}

}  // namespace

TERSE_FOR_EACH_PROCESSOR
bool all_finite_16(const uint16_t* x, int64_t n, uint16_t exponent) { return all_finite(x, n, exponent); }
TERSE_FOR_EACH_PROCESSOR
bool all_finite_32(const uint32_t* x, int64_t n, uint32_t exponent) { return all_finite(x, n, exponent); }
TERSE_FOR_EACH_PROCESSOR
bool all_finite_64(const uint64_t* x, int64_t n, uint64_t exponent) { return all_finite(x, n, exponent); }

TERSE_FOR_EACH_PROCESSOR
void rms_norm_rows(const float* x, const float* γ, float* y, float* r, int64_t rows, int64_t d, float ε) {
    const int64_t whole = d / width * width, rest = d - whole;
    for (int64_t i = 0; i < rows; i++, x += d, y += d) {
        Vector squares{};
        for (int64_t j = 0; j < whole; j += width) squares += load(x + j) * load(x + j);
        const Vector last = load_some(x + whole, rest);
        r[i] = 1.0f / std::sqrt(sum(squares + last * last) / static_cast<float>(d) + ε);
        for (int64_t j = 0; j < whole; j += width) store(y + j, load(x + j) * r[i] * load(γ + j));
        store_some(y + whole, last * r[i] * load_some(γ + whole, rest), rest);
    }
}

TERSE_FOR_EACH_PROCESSOR
void rms_norm_backward_rows(const float* dy, const float* x, const float* γ, const float* r, float* dx, float* dγ,
                            int64_t rows, int64_t d) {
    const int64_t whole = d / width * width, rest = d - whole;
    std::memset(dγ, 0, sizeof(float) * d);
    for (int64_t i = 0; i < rows; i++, x += d, dy += d, dx += d) {
        Vector products{};
        for (int64_t j = 0; j < whole; j += width) {
            const Vector both = load(dy + j) * load(x + j);
            products += both * load(γ + j);
            store(dγ + j, load(dγ + j) + both * r[i]);
        }
        const Vector x_last = load_some(x + whole, rest),
                     t_last = load_some(dy + whole, rest) * load_some(γ + whole, rest);
        for (int64_t j = whole; j < d; j++) dγ[j] += dy[j] * x[j] * r[i];
        const float pull = r[i] * r[i] * (sum(products + t_last * x_last) / static_cast<float>(d));
        for (int64_t j = 0; j < whole; j += width)
            store(dx + j, r[i] * (load(dy + j) * load(γ + j) - load(x + j) * pull));
        store_some(dx + whole, r[i] * (t_last - x_last * pull), rest);
    }
}

// Plain loops, which the compiler makes as wide as each processor is. It would compare vectors of 16 one float at a
// time where registers are shorter.
TERSE_FOR_EACH_PROCESSOR
void swiglu_elements(const float* __restrict g, const float* __restrict u, float* __restrict y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = g[i] * sigmoid(g[i]) * u[i];
}

TERSE_FOR_EACH_PROCESSOR
void swiglu_backward_elements(const float* __restrict dy, const float* __restrict g, const float* __restrict u,
                              float* __restrict dg, float* __restrict du, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float σ = sigmoid(g[i]);
        du[i] = dy[i] * (g[i] * σ);
        dg[i] = dy[i] * u[i] * (σ * (1.0f + g[i] * (1.0f - σ)));
    }
}

}  // namespace terse
