#include <immintrin.h>
#include <string.h>

#include "sign.h"

static uint64_t load_word(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

// 64 floats -> 8 bytes at once. x - x is +0 for every finite x and NaN otherwise, so the OR of all differences is the check.
static inline __attribute__((always_inline)) size_t encode_blocks(uint8_t *wire, const float *x, size_t n, const uint8_t *hold, const int predicate) {
    const __m256 zero = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m256 bad = zero;
        uint64_t word = 0;
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            bad = _mm256_or_ps(bad, _mm256_sub_ps(v, v));
            word |= (uint64_t)(unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v, zero, predicate)) << (8 * k);
        }
        if (!_mm256_testz_si256(_mm256_castps_si256(bad), _mm256_castps_si256(bad))) break;  // scalar finds the lane
        if (hold) word &= ~load_word(hold + i / 8);
        memcpy(wire + i / 8, &word, 8);
    }
    return i;
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options) {
    const uint8_t *hold = options->hold;
    const size_t done = options->zero == TERSE_ZERO_PLUS ? encode_blocks(wire, x, n, hold, _CMP_GE_OQ)
                                                         : encode_blocks(wire, x, n, hold, _CMP_GT_OQ);
    const terse_codec_options rest = {options->zero, hold ? hold + done / 8 : NULL, options->scale};
    return done + terse_sign_scalar.encode(wire + done / 8, x + done, n - done, &rest);
}

// Brings bit 8 k + lane of a 32-bit word to the top of its lane: there it is a float's sign.
static inline __m256i lane_shifts(int k) {
    return _mm256_sub_epi32(_mm256_set1_epi32(31 - 8 * k), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static void decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options) {
    const __m256 minus_scale = _mm256_set1_ps(-options->scale), sign_bit = _mm256_set1_ps(-0.0f);
    const uint8_t *hold = options->hold;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        uint32_t word, held = 0;
        memcpy(&word, wire + i / 8, 4);
        if (hold) memcpy(&held, hold + i / 8, 4);
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const __m256 plus = _mm256_castsi256_ps(_mm256_sllv_epi32(_mm256_set1_epi32((int)word), lane_shifts(k)));
            const __m256 value = _mm256_xor_ps(minus_scale, _mm256_and_ps(plus, sign_bit));
            const __m256 before = _mm256_loadu_ps(sum + i + 8 * k);
            __m256 after = _mm256_add_ps(before, value);
            if (hold) after = _mm256_blendv_ps(after, before, _mm256_castsi256_ps(_mm256_sllv_epi32(_mm256_set1_epi32((int)held), lane_shifts(k))));
            _mm256_storeu_ps(sum + i + 8 * k, after);
        }
    }
    const terse_codec_options rest = {options->zero, hold ? hold + i / 8 : NULL, options->scale};
    terse_sign_scalar.decode_add(sum + i, wire + i / 8, n - i, &rest);
}

const terse_codec terse_sign_avx2 = {"sign", "avx2", terse_sign_wire_bytes, encode, decode_add};
