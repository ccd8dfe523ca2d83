#include "lion.h"

static inline int is_finite(float x) { return x - x == 0.0f; }

static inline int bit(const uint8_t *wire, size_t i) { return wire[i / 8] >> (i % 8) & 1; }

static size_t vote(uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options) {
    const lion_weights w = lion_weights_of(options);
    const int zero_is_plus = options->zero == TERSE_LION_PLUS;
    for (size_t first = 0; first < n; first += 8) {
        unsigned byte = 0;
        for (size_t i = first; i < n && i < first + 8; i++) {
            const float scaled = g[i] * w.gradient, c = w.m_in_c * m[i] + w.g_in_c * scaled;
            if (!is_finite(c)) return i;
            byte |= (unsigned)(zero_is_plus ? c >= 0.0f : c > 0.0f) << (i - first);
            m[i] = w.m_in_m * m[i] + w.g_in_m * scaled;
        }
        wire[first / 8] = (uint8_t)byte;
    }
    return n;
}

static void mix(float *c, float *m, const float *g, size_t n, const terse_lion_options *options) {
    const lion_weights w = lion_weights_of(options);
    for (size_t i = 0; i < n; i++) {
        const float scaled = g[i] * w.gradient;
        c[i] = w.m_in_c * m[i] + w.g_in_c * scaled;
        m[i] = w.m_in_m * m[i] + w.g_in_m * scaled;
    }
}

static size_t step(float *theta, float *m, const float *g, size_t n, const terse_lion_options *options) {
    const lion_weights w = lion_weights_of(options);
    for (size_t i = 0; i < n; i++) {
        const float scaled = g[i] * w.gradient, c = w.m_in_c * m[i] + w.g_in_c * scaled;
        if (!is_finite(c)) return i;
        const float kept = theta[i] * w.keep;
        if (c == 0.0f && options->zero == TERSE_LION_HOLD) theta[i] = kept;
        else theta[i] = kept + (c > 0.0f || (c == 0.0f && options->zero == TERSE_LION_PLUS) ? w.scale : -w.scale);
        m[i] = w.m_in_m * m[i] + w.g_in_m * scaled;
    }
    return n;
}

static void apply_signs(float *theta, const uint8_t *wire, size_t n, float keep, float scale) {
    for (size_t i = 0; i < n; i++) theta[i] = theta[i] * keep + (bit(wire, i) ? scale : -scale);
}

static void apply_ternary(float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep,
                          float scale) {
    for (size_t i = 0; i < n; i++) {
        const float kept = theta[i] * keep;
        theta[i] = bit(nonzero, i) ? kept + (bit(plus, i) ? scale : -scale) : kept;
    }
}

static terse_optimizer_status apply_tally(float *theta, const uint8_t *const *planes, size_t ranks, size_t n,
                                          float keep, float scale) {
    if (ranks < 1 || ranks > TERSE_TALLY_MAX_RANKS) return TERSE_OPTIMIZER_BAD_RANKS;
    const int count = tally_planes(ranks);
    for (size_t i = 0; i < n; i++) {
        int c = 0;
        for (int k = 0; k < count; k++) c |= bit(planes[k], i) << k;
        theta[i] = theta[i] * keep + (float)(2 * c - (int)ranks) / (float)ranks * scale;
    }
    return TERSE_OPTIMIZER_OK;
}

const terse_lion terse_lion_scalar = {"scalar", vote, mix, step, apply_signs, apply_ternary, apply_tally};
