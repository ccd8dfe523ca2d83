#include "fused_kernels.h"

#include <cmath>
#include <cstring>
#include <initializer_list>

// One body, compiled for each instruction set; the loader takes the best that the processor has.
#if defined(__x86_64__)
#define TERSE_FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TERSE_FOR_EACH_PROCESSOR
#endif
#define TERSE_INLINE static inline __attribute__((always_inline))

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors only ever go between functions that are inlined

namespace terse {
namespace {

constexpr int64_t lanes = 16;
typedef float Lanes __attribute__((vector_size(4 * lanes)));
typedef int32_t Whole __attribute__((vector_size(4 * lanes)));

TERSE_INLINE Lanes load(const float* from) {
    Lanes x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

TERSE_INLINE void store(float* to, Lanes x) { std::memcpy(to, &x, sizeof x); }

// The last n < 16 of a row, and zeros.
TERSE_INLINE Lanes load_some(const float* from, int64_t n) {
    Lanes x{};
    std::memcpy(&x, from, sizeof(float) * n);
    return x;
}

TERSE_INLINE void store_some(float* to, Lanes x, int64_t n) { std::memcpy(to, &x, sizeof(float) * n); }

TERSE_INLINE float sum(Lanes x) {
    float half[lanes];
    store(half, x);
    for (int64_t n = lanes / 2; n > 0; n /= 2)
        for (int64_t i = 0; i < n; i++) half[i] += half[i + n];
    return half[0];
}

// e^x = 2ⁿ eʳ, n the nearest whole number to x / ln 2; Taylor's series of eʳ to r⁷ is below a half unit in the last place for |r| ≤ ln 2 / 2.
TERSE_INLINE Lanes exponential(Lanes x) {
    const Lanes least = Lanes{} - 87, most = Lanes{} + 88;  // beyond these 2ⁿ is no normal number
    x = x < least ? least : x;
    x = x > most ? most : x;
    const float round = 12582912.0f;  // 1.5 · 2²³: the last bit of what is added to it is worth 1
    const Lanes shifted = x * 1.44269504f + round;
    const Lanes n = shifted - round;
    const Lanes r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts, of which the first times n is exact
    Lanes e = r * (1.0f / 5040) + 1.0f / 720;
    for (const float coefficient : {1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f, 1.0f}) e = e * r + coefficient;
    Whole exponent;
    std::memcpy(&exponent, &shifted, sizeof exponent);
    exponent = (exponent - 0x4B400000 + 127) << 23;
    Lanes scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    return e * scale;
}

TERSE_INLINE Lanes sigmoid(Lanes x) { return 1.0f / (1.0f + exponential(-x)); }

}  // namespace

TERSE_FOR_EACH_PROCESSOR
void rms_norm_rows(const float* x, const float* γ, float* y, float* r, int64_t rows, int64_t d, float ε) {
    const int64_t whole = d / lanes * lanes, rest = d - whole;
    for (int64_t i = 0; i < rows; i++, x += d, y += d) {
        Lanes squares{};
        for (int64_t j = 0; j < whole; j += lanes) squares += load(x + j) * load(x + j);
        const Lanes last = load_some(x + whole, rest);
        r[i] = 1.0f / std::sqrt(sum(squares + last * last) / static_cast<float>(d) + ε);
        for (int64_t j = 0; j < whole; j += lanes) store(y + j, load(x + j) * r[i] * load(γ + j));
        store_some(y + whole, last * r[i] * load_some(γ + whole, rest), rest);
    }
}

TERSE_FOR_EACH_PROCESSOR
void rms_norm_backward_rows(const float* dy, const float* x, const float* γ, const float* r, float* dx, float* dγ, int64_t rows, int64_t d) {
    const int64_t whole = d / lanes * lanes, rest = d - whole;
    std::memset(dγ, 0, sizeof(float) * d);
    for (int64_t i = 0; i < rows; i++, x += d, dy += d, dx += d) {
        Lanes products{};
        for (int64_t j = 0; j < whole; j += lanes) {
            const Lanes both = load(dy + j) * load(x + j);
            products += both * load(γ + j);
            store(dγ + j, load(dγ + j) + both * r[i]);
        }
        const Lanes x_last = load_some(x + whole, rest), t_last = load_some(dy + whole, rest) * load_some(γ + whole, rest);
        for (int64_t j = whole; j < d; j++) dγ[j] += dy[j] * x[j] * r[i];
        const float pull = r[i] * r[i] * (sum(products + t_last * x_last) / static_cast<float>(d));
        for (int64_t j = 0; j < whole; j += lanes) store(dx + j, r[i] * (load(dy + j) * load(γ + j) - load(x + j) * pull));
        store_some(dx + whole, r[i] * (t_last - x_last * pull), rest);
    }
}

TERSE_FOR_EACH_PROCESSOR
void swiglu_lanes(const float* g, const float* u, float* y, int64_t n) {
    const int64_t whole = n / lanes * lanes, rest = n - whole;
    for (int64_t i = 0; i < whole; i += lanes) store(y + i, load(g + i) * sigmoid(load(g + i)) * load(u + i));
    const Lanes last = load_some(g + whole, rest);
    store_some(y + whole, last * sigmoid(last) * load_some(u + whole, rest), rest);
}

TERSE_FOR_EACH_PROCESSOR
void swiglu_backward_lanes(const float* dy, const float* g, const float* u, float* dg, float* du, int64_t n) {
    const int64_t whole = n / lanes * lanes, rest = n - whole;
    for (int64_t i = 0; i < whole; i += lanes) {
        const Lanes Dy = load(dy + i), G = load(g + i), σ = sigmoid(G);
        store(du + i, Dy * (G * σ));
        store(dg + i, Dy * load(u + i) * (σ * (1.0f + G * (1.0f - σ))));
    }
    const Lanes Dy = load_some(dy + whole, rest), G = load_some(g + whole, rest), σ = sigmoid(G);
    store_some(du + whole, Dy * (G * σ), rest);
    store_some(dg + whole, Dy * load_some(u + whole, rest) * (σ * (1.0f + G * (1.0f - σ))), rest);
}

}  // namespace terse
