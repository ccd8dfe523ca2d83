// scaled-sign: one fp32 per scale group, the root of its mean square, then one bit per float as sign writes it.
// n floats -> 4 scale groups + ceil(n / 8) bytes.
//
//   | scale of group 0 | scale of group 1 | ... | bits of x[0] .. x[7] | ...
//
// The bits are those of sign. Either the reduction of squares writes them, or sign's kernels; see
// terse_scaled_sign_at_once.
#ifndef TERSE_SCALED_SIGN_H
#define TERSE_SCALED_SIGN_H
#include <math.h>

#include "../../shared/reductions/reductions.h"
#include "../../shared/scale-groups/scale_groups.h"
#include "../sign/sign.h"

extern const terse_codec terse_scaled_sign_scalar, terse_scaled_sign_avx2, terse_scaled_sign_avx512,
    terse_scaled_sign_neon;
size_t terse_scaled_sign_wire_bytes(size_t n, const terse_codec_options *options);

enum { TERSE_SCALED_SIGN_TAKES = TERSE_TAKES_ZERO | TERSE_TAKES_HOLD | TERSE_TAKES_BLOCK | TERSE_TAKES_SEGMENTS };

// Bits i .. i + 15 of a mask that holds at least these.
static inline unsigned terse_16_bits(const uint8_t *mask, size_t i) {
    const uint8_t *at = mask + i / 8;
    const unsigned two = at[0] | (unsigned)at[1] << 8;
    return i % 8 ? (two | (unsigned)at[2] << 16) >> i % 8 & 0xffff : two;
}

// The sum of squares of x[begin] .. x[end - 1], in the order of reductions.h; masked elements count as 0. *count:
// elements that are not masked. A NaN or an infinity makes the sum not finite, masked or not.
static inline double terse_spoken_squares(const float *x, const uint8_t *hold, size_t begin, size_t end,
                                          size_t *count) {
    double all = 0;
    *count = 0;
    for (size_t at = begin; at < end; at += TERSE_REDUCTION_CHUNK) {
        const size_t stop = end - at < TERSE_REDUCTION_CHUNK ? end : at + TERSE_REDUCTION_CHUNK;
        double partial[16] = {0};
        size_t i = at;
        for (; i + 16 <= stop; i += 16) {
            const unsigned spoken = ~terse_16_bits(hold, i) & 0xffff;
            *count += (size_t)__builtin_popcount(spoken);
            for (int j = 0; j < 16; j++) partial[j] += (double)x[i + j] * x[i + j] * (double)(int)(spoken >> j & 1);
        }
        for (; i < stop; i++) {
            const int spoken = ~(hold[i / 8] >> (i % 8)) & 1;
            *count += (size_t)spoken;
            partial[(i - at) % 16] += (double)x[i] * x[i] * spoken;
        }
        all += terse_reductions_fold(partial);
    }
    return all;
}

// Whether every byte of bits belongs to one scale group, and no element is masked: then one pass over x writes the bits
// and computes the scales.
static inline int terse_scaled_sign_at_once(size_t n, const terse_codec_options *o) {
    if (o->hold || o->block % 8) return 0;
    for (size_t s = 0; s < o->segment_count; s++)
        if (o->segments[s] % 8 && o->segments[s] < n) return 0;
    return 1;
}

typedef struct terse_scaled_sign_preparing {
    const terse_reductions *reductions;
    uint8_t *bits;  // NULL: written later
} terse_scaled_sign_preparing;

static inline size_t terse_scaled_sign_scale(const void *by, const float *x, size_t begin, size_t end,
                                             const terse_codec_options *o, float *scale) {
    const terse_scaled_sign_preparing *p = (const terse_scaled_sign_preparing *)by;
    size_t count = end - begin;
    const double squares = o->hold   ? terse_spoken_squares(x, o->hold, begin, end, &count)
                           : p->bits ? p->reductions->sum_of_squares_and_signs(p->bits + begin / 8, x + begin, count,
                                                                               o->zero == TERSE_ZERO_PLUS)
                                     : p->reductions->sum_of_squares(x + begin, count);
    *scale = count ? (float)sqrt(squares / (double)count) : 0.0f;
    return squares - squares == 0.0 ? end : begin + terse_first_not_finite(x + begin, end - begin);
}

static inline size_t terse_scaled_sign_prepare(const terse_reductions *reductions, uint8_t *wire, const float *x,
                                               size_t n, const terse_codec_options *o) {
    if (terse_scales_in_encode(o)) return n;
    const terse_scaled_sign_preparing p = {
        reductions, terse_scaled_sign_at_once(n, o) ? wire + 4 * terse_scale_group_count(n, o) : NULL};
    return terse_compute_scales(terse_scaled_sign_scale, &p, 1, wire, x, n, o);
}

// Of a chunk of one scale group without a mask: its sum of squares. Also writes its bits.
static inline double terse_scaled_sign_measure(const terse_reductions *reductions, uint8_t *wire, const float *x,
                                               const terse_codec_options *o, size_t begin, size_t end) {
    return reductions->sum_of_squares_and_signs(wire + 4 + begin / 8, x + begin, end - begin,
                                                o->zero == TERSE_ZERO_PLUS);
}

static inline size_t terse_scaled_sign_prepare_measured(uint8_t *wire, const float *x, size_t n,
                                                        const double *measures) {
    if (n == 0) return 0;
    const double squares = terse_reductions_combine(measures, n, TERSE_SUM);
    terse_set_scale(wire, 0, (float)sqrt(squares / (double)n));
    return squares - squares == 0.0 ? n : terse_first_not_finite(x, n);
}

static inline void terse_clear_bits(uint8_t *bits, size_t begin, size_t end) {
    for (; begin < end && begin % 8; begin++) bits[begin / 8] &= (uint8_t)~(1u << begin % 8);
    for (; begin < end && end % 8; end--) bits[(end - 1) / 8] &= (uint8_t)~(1u << (end - 1) % 8);
    memset(bits + begin / 8, 0, (end - begin) / 8);
}

static inline size_t terse_scaled_sign_encode(const terse_reductions *reductions, const terse_codec *sign,
                                              uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,
                                              size_t begin, size_t end) {
    uint8_t *const bits = wire + 4 * terse_scale_group_count(n, o);
    const int at_once = terse_scaled_sign_at_once(n, o), in_encode = terse_scales_in_encode(o);
    if (!at_once) {
        const size_t done = sign->encode(bits, x, n, o, begin, end);
        if (done < end) return done;
    }
    TERSE_EACH_GROUP_PART(part, begin, end, n, o) {
        float scale;
        if (in_encode) {
            // A block that reaches beyond this range may be another thread's to write.
            const int mine = part.begin >= begin && part.end <= end;
            const terse_scaled_sign_preparing p = {reductions, at_once && mine ? bits : NULL};
            const size_t accepted = terse_scaled_sign_scale(&p, x, part.begin, part.end, o, &scale);
            if (accepted < part.end) return accepted;
            if (at_once && !mine) sign->encode(bits, x, n, o, part.from, part.to);
            if (part.begin >= begin) terse_set_scale(wire, part.r, scale);
        } else {
            scale = terse_scale_at(wire, part.r);
        }
        if (scale == 0.0f) terse_clear_bits(bits, part.from, part.to);
    }
    return end;
}

static inline terse_codec_status terse_scaled_sign_decode_add(const terse_codec *sign, float *sum, const uint8_t *wire,
                                                              size_t n, const terse_codec_options *o, size_t begin,
                                                              size_t end) {
    const uint8_t *bits = wire + 4 * terse_scale_group_count(n, o);
    terse_codec_options scaled = *o;
    TERSE_EACH_GROUP_PART(part, begin, end, n, o) {
        const size_t whole = (part.from + 7) / 8 * 8, head = whole < part.to ? whole : part.to;
        scaled.scale = o->scale * terse_scale_at(wire, part.r);
        terse_sign_scalar.decode_add(sum, bits, n, &scaled, part.from, head);  // up to a whole byte of bits
        sign->decode_add(sum, bits, n, &scaled, head, part.to);
    }
    return TERSE_CODEC_OK;
}

// The table of one implementation, and three of its functions; momentum.h has the others.
#define TERSE_SCALED_SIGN(by)                                                                                        \
    static size_t prepare(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {                   \
        return terse_scaled_sign_prepare(&terse_reductions_##by, wire, x, n, o);                                     \
    }                                                                                                                \
    static double measure_chunk(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, \
                                size_t end) {                                                                        \
        (void)n;                                                                                                     \
        return terse_scaled_sign_measure(&terse_reductions_##by, wire, x, o, begin, end);                            \
    }                                                                                                                \
    static size_t prepare_measured(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,            \
                                   const double *measures) {                                                         \
        (void)o;                                                                                                     \
        return terse_scaled_sign_prepare_measured(wire, x, n, measures);                                             \
    }                                                                                                                \
    static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,        \
                         size_t end) {                                                                               \
        return terse_scaled_sign_encode(&terse_reductions_##by, &terse_sign_##by, wire, x, n, o, begin, end);        \
    }                                                                                                                \
    static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,    \
                                         size_t begin, size_t end) {                                                 \
        return terse_scaled_sign_decode_add(&terse_sign_##by, sum, wire, n, o, begin, end);                          \
    }                                                                                                                \
    const terse_codec terse_scaled_sign_##by = {                                                                     \
        .name = "scaled-sign",                                                                                       \
        .implementation = #by,                                                                                       \
        .takes = TERSE_SCALED_SIGN_TAKES,                                                                            \
        .wire_bytes = terse_scaled_sign_wire_bytes,                                                                  \
        .prepare = prepare,                                                                                          \
        .encode = encode,                                                                                            \
        .is_good = terse_scales_are_good,                                                                            \
        .decode_add = decode_add,                                                                                    \
        .blocks_in_encode = TERSE_BLOCK_IN_ENCODE,                                                                   \
        .encode_momentum = encode_momentum,                                                                          \
        .encode_sum = encode_sum,                                                                                    \
        .measure = measure_chunk,                                                                                    \
        .prepare_measured = prepare_measured,                                                                        \
    };

#endif
