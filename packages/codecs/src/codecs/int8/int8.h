// int8: one fp32 per scale group, its largest magnitude, then a byte per float in two's complement: -127 .. 127.
// n floats -> 4 scale groups + n bytes.
//
//   q = round half even(x 127 / scale)        decoded = fp32(q (scale / 127))
#ifndef TERSE_INT8_H
#define TERSE_INT8_H
#include "../../shared/reductions/reductions.h"
#include "../../shared/scale-groups/scale_groups.h"
#include "terse/walk.h"

extern const terse_codec terse_int8_scalar, terse_int8_avx2, terse_int8_avx512, terse_int8_neon;
size_t terse_int8_wire_bytes(size_t n, const terse_codec_options *options);

enum { TERSE_INT8_TAKES = TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS };

// Levels per unit of x, and the inverse.
static inline double terse_int8_levels(float scale) { return scale > 0.0f ? 127.0 / (double)scale : 0.0; }
static inline double terse_int8_step(float scale) { return (double)scale / 127.0; }

// The prefetch distance.
static inline size_t terse_int8_ahead(size_t run) { return run < TERSE_WALK_GROUP ? 512 : TERSE_WALK_GROUP; }

// Elements [begin, end), all of one scale group; `bytes` are those of all elements.
typedef void terse_int8_writing(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels);
typedef void terse_int8_reading(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale);
terse_int8_writing terse_int8_write;
terse_int8_reading terse_int8_read;

// The walk over scale groups, which all implementations share.
size_t terse_int8_prepare(const terse_reductions *reductions, uint8_t *wire, const float *x, size_t n,
                          const terse_codec_options *o);
size_t terse_int8_prepare_measured(uint8_t *wire, const float *x, size_t n, const double *measures);
size_t terse_int8_scales(const terse_reductions *reductions, uint8_t *scales, const float *x, size_t n,
                         const terse_codec_options *o);
size_t terse_int8_encode(const terse_reductions *reductions, terse_int8_writing *write, uint8_t *wire, const float *x,
                         size_t n, const terse_codec_options *o, size_t begin, size_t end);
int terse_int8_is_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end);
terse_codec_status terse_int8_decode_add(terse_int8_reading *read, float *sum, const uint8_t *wire, size_t n,
                                         const terse_codec_options *o, size_t begin, size_t end);

// The table of one implementation, from its reductions and its two loops.
#define TERSE_INT8(by, write, read)                                                                               \
    static size_t prepare(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {                \
        return terse_int8_prepare(&terse_reductions_##by, wire, x, n, o);                                         \
    }                                                                                                             \
    static double measure(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,    \
                          size_t end) {                                                                           \
        (void)wire, (void)n, (void)o;                                                                             \
        return terse_reductions_##by.largest(x + begin, end - begin);                                             \
    }                                                                                                             \
    static size_t prepare_measured(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,         \
                                   const double *measures) {                                                      \
        (void)o;                                                                                                  \
        return terse_int8_prepare_measured(wire, x, n, measures);                                                 \
    }                                                                                                             \
    static size_t scales_of(uint8_t *scales, const float *x, size_t n, const terse_codec_options *o) {            \
        return terse_int8_scales(&terse_reductions_##by, scales, x, n, o);                                        \
    }                                                                                                             \
    static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,     \
                         size_t end) {                                                                            \
        return terse_int8_encode(&terse_reductions_##by, write, wire, x, n, o, begin, end);                       \
    }                                                                                                             \
    static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, \
                                         size_t begin, size_t end) {                                              \
        return terse_int8_decode_add(read, sum, wire, n, o, begin, end);                                          \
    }                                                                                                             \
    const terse_codec terse_int8_##by = {                                                                         \
        .name = "int8",                                                                                           \
        .implementation = #by,                                                                                    \
        .takes = TERSE_INT8_TAKES,                                                                                \
        .wire_bytes = terse_int8_wire_bytes,                                                                      \
        .prepare = prepare,                                                                                       \
        .encode = encode,                                                                                         \
        .is_good = terse_int8_is_good,                                                                            \
        .decode_add = decode_add,                                                                                 \
        .scales = scales_of,                                                                                      \
        .blocks_in_encode = TERSE_BLOCK_IN_ENCODE,                                                                \
        .measure = measure,                                                                                       \
        .prepare_measured = prepare_measured,                                                                     \
    };

#endif
