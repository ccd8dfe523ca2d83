// terngrad: one fp32 per scale group, then two bits per float, the code t + 1 of t = -1, 0 or +1. n floats -> 4 scale
// groups + ceil(n / 4) bytes.
//
//   bits of byte j    7 6             5 4             3 2          1 0            Q = ceil(n / 4)
//                     code[3 Q + j]   code[2 Q + j]   code[Q + j]  code[j]        0 past the end
//
// So neighbouring elements are far apart on the wire. A range [begin, end) means the bytes begin / 4 .. end / 4 and all
// elements in them: threads share the bytes.
#ifndef TERSE_TERNGRAD_H
#define TERSE_TERNGRAD_H
#include "../../shared/reductions/reductions.h"
#include "../../shared/scale-groups/scale_groups.h"

extern const terse_codec terse_terngrad_scalar, terse_terngrad_avx2, terse_terngrad_avx512, terse_terngrad_neon;
size_t terse_terngrad_wire_bytes(size_t n, const terse_codec_options *options);
terse_codec_status terse_terngrad_check(size_t n, const terse_codec_options *options);
size_t terse_terngrad_prepare(const terse_reductions *reductions, uint8_t *wire, const float *x, size_t n,
                              const terse_codec_options *o);

enum { TERSE_TERNGRAD_TAKES = TERSE_TAKES_RANDOM | TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS | TERSE_TAKES_CLIP };

static inline size_t terse_terngrad_quarter(size_t n) { return n / 4 + (n % 4 != 0); }

// The bytes that the elements [.., end) of a call stand for end here.
static inline size_t terse_terngrad_byte(size_t end, size_t n) {
    return end == n ? terse_terngrad_quarter(n) : end / 4;
}

// A draw below p 2^31 is one with probability p = |x| / scale.
static inline double terse_terngrad_odds(float scale) { return scale > 0.0f ? 1.0 / (double)scale * 0x1p31 : 0.0; }

// What each code adds; no encoder writes 3.
typedef struct terse_terngrad_table {
    float of[4];
} terse_terngrad_table;
static inline terse_terngrad_table terse_terngrad_values(float group_scale, float scale) {
    const float value = group_scale * scale;
    return (terse_terngrad_table){{-value, 0.0f * scale, value, value}};
}

// The table of one implementation.
#define TERSE_TERNGRAD(by)                                                                         \
    static size_t prepare(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) { \
        return terse_terngrad_prepare(&terse_reductions_##by, wire, x, n, o);                      \
    }                                                                                              \
    const terse_codec terse_terngrad_##by = {                                                      \
        .name = "terngrad",                                                                        \
        .implementation = #by,                                                                     \
        .takes = TERSE_TERNGRAD_TAKES,                                                             \
        .check = terse_terngrad_check,                                                             \
        .wire_bytes = terse_terngrad_wire_bytes,                                                   \
        .prepare = prepare,                                                                        \
        .encode = encode,                                                                          \
        .decode_add = decode_add,                                                                  \
        .scattered = 1,                                                                            \
    };

#endif
