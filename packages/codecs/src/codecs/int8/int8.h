// int8: one fp32 per scale group, its largest magnitude, then a byte per float in two's complement: -127 .. 127.
// n floats -> 4 scale groups + n bytes.
//
//   q = round half even(x 127 / scale)        decoded = fp32(q (scale / 127))
#ifndef TERSE_INT8_H
#define TERSE_INT8_H
#include "../../shared/scale-groups/scaling.h"
#include "terse/walk.h"

extern const terse_codec terse_int8_scalar, terse_int8_avx2, terse_int8_avx512, terse_int8_neon;
size_t terse_int8_wire_bytes(size_t n, const terse_codec_options *options);

enum { TERSE_INT8_TAKES = TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS };

// Levels per unit of x, and the inverse.
static inline double terse_int8_levels(float scale) { return scale > 0.0f ? 127.0 / (double)scale : 0.0; }
static inline double terse_int8_step(float scale) { return (double)scale / 127.0; }

// The prefetch distance.
static inline size_t terse_int8_ahead(size_t run) { return run < TERSE_WALK_GROUP ? 512 : TERSE_WALK_GROUP; }

// What differs between implementations. The two loops work on elements [begin, end), all of one scale group; `bytes`
// are those of all elements.
typedef struct terse_int8_kernel {
    terse_scaling scaling;
    void (*write)(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels);
    void (*read)(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale);
} terse_int8_kernel;
void terse_int8_write(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels);
void terse_int8_read(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale);

// What all implementations share.
size_t terse_int8_scale(const terse_scaling *scaling, double largest, const float *x, size_t begin, size_t end,
                        const terse_codec_options *o, float *scale);
size_t terse_int8_encode(const terse_int8_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                         const terse_codec_options *o, size_t begin, size_t end);
int terse_int8_is_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end);
terse_codec_status terse_int8_decode_add(const terse_int8_kernel *kernel, float *sum, const uint8_t *wire, size_t n,
                                         const terse_codec_options *o, size_t begin, size_t end);

// The table of one implementation, from its two loops.
#define TERSE_INT8(by, write, read)                                                                       \
    static double measure(const float *x, size_t n) { return terse_reductions_##by.largest(x, n); }       \
    static const terse_int8_kernel kernel = {{measure, TERSE_LARGEST, 0, terse_int8_scale}, write, read}; \
    static size_t scales_of(uint8_t *scales, const float *x, size_t n, const terse_codec_options *o) {    \
        return terse_scaling_scales(&kernel.scaling, scales, x, n, o);                                    \
    }                                                                                                     \
    TERSE_SCALED_CODEC(terse_int8_##by, int8, kernel, by, .name = "int8", .takes = TERSE_INT8_TAKES,      \
                       .wire_bytes = terse_int8_wire_bytes, .is_good = terse_int8_is_good, .scales = scales_of)

#endif
