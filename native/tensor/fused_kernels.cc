#include "fused_kernels.h"

#include <cmath>
#include <cstring>
#include <initializer_list>

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
typedef int32_t IntVector __attribute__((vector_size(4 * width)));

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
TERSE_INLINE Vector exponential(Vector x) {
    const Vector least = Vector{} - 87, most = Vector{} + 88;  // outside of them 2ⁿ is not a normal number
    x = x < least ? least : x;
    x = x > most ? most : x;
    const float round = 12582912.0f;  // 1.5 · 2²³: adding it rounds x to an integer, which is in the last bits of the sum
    const Vector shifted = x * 1.44269504f + round;
    const Vector n = shifted - round;
    const Vector r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts; n times the first part is exact
    Vector e = r * (1.0f / 5040) + 1.0f / 720;
    for (const float coefficient : {1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f}) e = e * r + coefficient;
    IntVector exponent;
    std::memcpy(&exponent, &shifted, sizeof exponent);
    exponent = (exponent - 0x4B400000 + 127) << 23;
    Vector scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    return e * scale;
}

TERSE_INLINE Vector sigmoid(Vector x) { return 1.0f / (1.0f + exponential(-x)); }

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
void rms_norm_backward_rows(const float* dy, const float* x, const float* γ, const float* r, float* dx, float* dγ, int64_t rows, int64_t d) {
    const int64_t whole = d / width * width, rest = d - whole;
    std::memset(dγ, 0, sizeof(float) * d);
    for (int64_t i = 0; i < rows; i++, x += d, dy += d, dx += d) {
        Vector products{};
        for (int64_t j = 0; j < whole; j += width) {
            const Vector both = load(dy + j) * load(x + j);
            products += both * load(γ + j);
            store(dγ + j, load(dγ + j) + both * r[i]);
        }
        const Vector x_last = load_some(x + whole, rest), t_last = load_some(dy + whole, rest) * load_some(γ + whole, rest);
        for (int64_t j = whole; j < d; j++) dγ[j] += dy[j] * x[j] * r[i];
        const float pull = r[i] * r[i] * (sum(products + t_last * x_last) / static_cast<float>(d));
        for (int64_t j = 0; j < whole; j += width) store(dx + j, r[i] * (load(dy + j) * load(γ + j) - load(x + j) * pull));
        store_some(dx + whole, r[i] * (t_last - x_last * pull), rest);
    }
}

TERSE_FOR_EACH_PROCESSOR
void swiglu_elements(const float* g, const float* u, float* y, int64_t n) {
    const int64_t whole = n / width * width, rest = n - whole;
    for (int64_t i = 0; i < whole; i += width) store(y + i, load(g + i) * sigmoid(load(g + i)) * load(u + i));
    const Vector last = load_some(g + whole, rest);
    store_some(y + whole, last * sigmoid(last) * load_some(u + whole, rest), rest);
}

TERSE_FOR_EACH_PROCESSOR
void swiglu_backward_elements(const float* dy, const float* g, const float* u, float* dg, float* du, int64_t n) {
    const int64_t whole = n / width * width, rest = n - whole;
    for (int64_t i = 0; i < whole; i += width) {
        const Vector Dy = load(dy + i), G = load(g + i), σ = sigmoid(G);
        store(du + i, Dy * (G * σ));
        store(dg + i, Dy * load(u + i) * (σ * (1.0f + G * (1.0f - σ))));
    }
    const Vector Dy = load_some(dy + whole, rest), G = load_some(g + whole, rest), σ = sigmoid(G);
    store_some(du + whole, Dy * (G * σ), rest);
    store_some(dg + whole, Dy * load_some(u + whole, rest) * (σ * (1.0f + G * (1.0f - σ))), rest);
}

}  // namespace terse
