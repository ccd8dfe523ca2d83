// terngrad in the words of terse/vector.h, which a file includes before this one. It walks over quarters and scale
// groups.
#ifndef TERSE_TERNGRAD_VECTOR_H
#define TERSE_TERNGRAD_VECTOR_H
#include <math.h>

#include "../../shared/random/random_vector.h"
#include "terngrad.h"
#include "terse/walk.h"

enum { CHUNK = 1024, WORDS = CHUNK / 64 };  // bytes at a time

// The upper 31 bits of each word, twice, as doubles: below 2^52 a double's bits count.
static inline wide draws(longs word) {
    const wide whole = SPLAT_WIDE(0x1p52);
    return (wide)((word & 0xfffffffe) | (longs)whole) - whole;
}

// 64 elements a word: no = bits of those drawn as 0, plus = bits of those drawn as +1; `odds` for all of them.
static void draw(uint64_t *no, uint64_t *plus, const float *x, size_t i, size_t words, const terse_codec_options *o,
                 double odds) {
    terse_random random = terse_random_of(o->seed, o->step);
    const wide by = SPLAT_WIDE(2 * odds);
    for (size_t w = 0; w < words; w++) {
        longs word[2 * VECTORS];
        mask drawn[VECTORS], positive[VECTORS];
        terse_prefetch(x + 64 * w + CHUNK);
        terse_vector_random_words(&random, o->index + i + 64 * w, word);
        EACH_VECTOR {
            const vec value = LOAD(x + 64 * w + LANES * k), magnitude = ABS(value);
            drawn[k] = WIDE_ABOVE(LOWER(magnitude) * by, UPPER(magnitude) * by, draws(word[2 * k]),
                                  draws(word[2 * k + 1]));
            positive[k] = ABOVE(value, SPLAT(0.0f));
        }
        no[w] = ~WORD(drawn);
        plus[w] = ~no[w] & WORD(positive);
    }
}

static inline uint64_t lanes(size_t begin, size_t end) { return ~(uint64_t)0 >> (64 - (end - begin)) << begin; }

// A part of a word, at the border of two scale groups or at the end.
static inline void draw_part(uint64_t *no, uint64_t *plus, const float *x, size_t i, size_t end,
                             const terse_codec_options *o, double odds) {
    float part[64] = {0};  // floats after the part may be outside of the array
    uint64_t part_no, part_plus;
    const uint64_t mask = lanes(i % 64, i % 64 + (end - i));
    memcpy(part + i % 64, x + i, (end - i) * sizeof *x);
    draw(&part_no, &part_plus, part, i / 64 * 64, 1, o, odds);
    *no |= part_no & mask;
    *plus |= part_plus & mask;
}

// Elements from .. from + count - 1, 64 a word, the first of them at bit 0; 0 past n.
static inline void draw_quarter(uint64_t *no, uint64_t *plus, const float *x, const uint8_t *wire, size_t n,
                                const terse_codec_options *o, size_t from, size_t count) {
    // Random words are made for 64 neighbours at a time, so whole words are drawn and then shifted.
    uint64_t drawn[2][WORDS + 2] = {{0}};
    const size_t first = from / 64 * 64, last = from + count < n ? from + count : n, shift = from % 64;
    for (size_t i = first; i < last;) {
        const size_t r = terse_scale_group_of(i, o), behind = terse_scale_group_begin(r + 1, n, o),
                     word = (i - first) / 64;
        const double odds = terse_terngrad_odds(terse_scale_at(wire, r));
        const size_t wanted = (last - i + 63) / 64, whole = i % 64                       ? 0
                                                            : (behind - i) / 64 < wanted ? (behind - i) / 64
                                                                                         : wanted;
        if (whole) {
            draw(drawn[0] + word, drawn[1] + word, x + i, i, whole, o, odds);
            i += 64 * whole;
        } else {
            const size_t stop = behind < i / 64 * 64 + 64 ? behind : i / 64 * 64 + 64;
            draw_part(drawn[0] + word, drawn[1] + word, x, i, stop, o, odds);
            i = stop;
        }
    }
    for (size_t w = 0; w < WORDS; w++) {
        no[w] = shift ? drawn[0][w] >> shift | drawn[0][w + 1] << (64 - shift) : drawn[0][w];
        plus[w] = shift ? drawn[1][w] >> shift | drawn[1][w + 1] << (64 - shift) : drawn[1][w];
    }
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    uint8_t *codes = wire + 4 * terse_scale_group_count(n, o);
    const size_t quarter = terse_terngrad_quarter(n), stop = terse_terngrad_byte(end, n);
    for (size_t j = begin / 4; j < stop; j += CHUNK) {
        const size_t count = stop - j < CHUNK ? stop - j : CHUNK;
        uint64_t planes[8][WORDS];  // bit k of all bytes: code 1 has the lower of its two bits set, code 2 the upper
        for (size_t k = 0; k < 4; k++)
            draw_quarter(planes[2 * k], planes[2 * k + 1], x, wire, n, o, k * quarter + j, count);
        for (size_t w = 0; 64 * w < count; w++) {
            uint8_t packed[64];
            bytes all = {0};
#pragma GCC unroll 8
            for (size_t k = 0; k < 8; k++) all = OR_WHERE(all, planes[k][w], 1u << k);
            STORE_BYTES(packed, all);
            memcpy(codes + j + 64 * w, packed, count - 64 * w < 64 ? count - 64 * w : 64);
        }
    }
    return end;
}

// sum[i] += value.of[code of quarter k in codes[i]], i = 0 .. count - 1
static void add(float *sum, const uint8_t *codes, size_t count, unsigned k, terse_terngrad_table value) {
    const vec table = TABLE(value.of);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE(sum + i, LOAD(sum + i) + LOOK_UP(table, LOAD_INT8(codes + i) >> (int)(2 * k)));
    for (; i < count; i++) sum[i] += value.of[codes[i] >> 2 * k & 3];
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     size_t begin, size_t end) {
    const size_t groups = terse_scale_group_count(n, o), quarter = terse_terngrad_quarter(n),
                 stop = terse_terngrad_byte(end, n);
    if (!terse_scales_are_good(wire, n, o, 0, n)) return TERSE_CODEC_BAD_WIRE;
    const uint8_t *codes = wire + 4 * groups;
    for (size_t j = begin / 4; j < stop; j += CHUNK)
        for (unsigned k = 0; k < 4; k++) {
            const size_t from = k * quarter, count = stop - j < CHUNK ? stop - j : CHUNK;
            const size_t last = from + j + count < n ? from + j + count : n;
            TERSE_EACH_GROUP_PART(part, from + j, last, n, o)
            add(sum + part.from, codes + (part.from - from), part.to - part.from, k,
                terse_terngrad_values(terse_scale_at(wire, part.r), o->scale));
        }
    return TERSE_CODEC_OK;
}

#endif
