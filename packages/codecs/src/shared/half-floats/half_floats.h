// What bf16 and f16 share in plain C. <codec>.c defines LARGEST and INFINITE, as half_floats_vector.h says, before it
// includes this, and the two conversions after it.
#include <string.h>

#include "half_table.h"

static uint16_t half_of(uint32_t bits);  // of an fp32 that fits, rounded to nearest even
static float value_of(uint16_t half);

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline uint16_t half_at(const uint8_t *wire, size_t i) {
    uint16_t half;
    memcpy(&half, wire + 2 * i, 2);
    return half;
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end) {
    (void)n, (void)options;
    for (size_t i = begin; i < end; i++) {
        const uint32_t bits = bits_of(x[i]);
        if ((bits & 0x7fffffffu) > LARGEST) return i;
        const uint16_t half = half_of(bits);
        memcpy(wire + 2 * i, &half, 2);
    }
    return end;
}

static int is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    (void)n, (void)options;
    for (size_t i = begin; i < end; i++)
        if ((half_at(wire, i) & INFINITE) == INFINITE) return 0;
    return 1;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end) {
    (void)n;
    for (size_t i = begin; i < end; i++) sum[i] += options->scale * value_of(half_at(wire, i));
    return TERSE_CODEC_OK;
}
