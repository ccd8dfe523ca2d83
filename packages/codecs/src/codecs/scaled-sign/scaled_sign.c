#include "passing.h"

size_t terse_scaled_sign_wire_bytes(size_t n, const terse_codec_options *options) {
    return 4 * terse_scale_group_count(n, options) + n / 8 + (n % 8 != 0);
}

static uint64_t measure_block(double partial[16], const float *x) {
    uint64_t plus = 0;
    for (size_t k = 0; k < 64; k++) {
        partial[k % 16] += (double)x[k] * x[k];
        plus |= (uint64_t)(x[k] >= 0.0f) << k;
    }
    return plus;
}

static uint64_t momentum_block(const passing *p, double partial[16], float *x, const float *m, const float *g) {
    for (size_t k = 0; k < 64; k++) x[k] = terse_fma(p->add, g[k], terse_fma(p->keep, m[k], rest_of(x[k], p->sent)));
    return measure_block(partial, x);
}

static uint64_t sum_block(const passing *p, double partial[16], float *x, size_t byte) {
    for (size_t k = 0; k < 64; k++) x[k] = rest_of(x[k], p->sent);
    for (size_t r = 0; r < p->count; r++) {
        const float scale = scale_of(p, r);
        for (size_t k = 0; k < 64; k++) x[k] += bits_of(p, r)[byte + k / 8] >> k % 8 & 1 ? scale : -scale;
    }
    return measure_block(partial, x);
}

#include "momentum.h"

TERSE_SCALED_SIGN(scalar)
