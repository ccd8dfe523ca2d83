// stochastic.h in the words of terse/vector.h and of ../fields/fields_<instructions>.h, which a file includes before
// this one.
#include "../random/random_vector.h"
#include "stochastic.h"

typedef struct drawing {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    uint64_t index;
    terse_packing packing;
    terse_random random;
    wide factor, most;   // uniform: times 2^32
    wide lowest, times;  // logarithmic: level 1 as a part of the scale, and what makes 2^32 of it
    uint64_t exponent;   // that of level 0, in the upper half
    unsigned s;
} drawing;

static inline wide power_of_two(int exponent) { return (wide)((longs){0} + ((uint64_t)(1023 + exponent) << 52)); }

static drawing drawing_of(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, uint64_t index) {
    const int s = (int)terse_levels_a_side(o);
    const double unit = o->levels == TERSE_LEVELS_LOGARITHMIC ? 1.0 : 0x1p32;
    return (drawing){
        fields,
        x,
        terse_levels_ahead(o),
        index,
        terse_packing_of(terse_field_width(o)),
        terse_random_of(o->seed, o->step),
        SPLAT_WIDE(terse_stochastic_factor(o, scale) * unit),
        SPLAT_WIDE(terse_stochastic_most(o) * unit),
        power_of_two(1 - s),
        power_of_two(s - 1 + 32),
        (uint64_t)(1023 - s) << 32,
        (unsigned)s,
    };
}

// Draws one of the two integers around v 2^-32; the result is in the upper half of each lane.
static inline longs draw(longs words, wide v) { return CEIL(v) + ((~words & 0xffffffff) | 1); }

static inline __attribute__((always_inline)) longs level_of(const drawing *d, wide x, longs words,
                                                            const terse_levels levels) {
    const wide v = WIDE_LIMIT(x * d->factor, d->most), whole = SPLAT_WIDE(0x1p32);
    if (levels != TERSE_LEVELS_LOGARITHMIC) return draw(words, v);
    const wide_mask is_low = WIDE_BELOW(v, d->lowest);
    const longs mantissa = ((longs)v & 0xfffffffffffff) | (longs)whole,
                exponent = ((longs)v >> 20 & 0xfff00000000) - d->exponent;
    const wide p = WIDE_CHOOSE(is_low, v * d->times, (wide)mantissa - whole);
    return (longs)WIDE_CHOOSE(is_low, SPLAT_WIDE(0), (wide)exponent) + draw(words, p);
}

static inline __attribute__((always_inline)) void draw_round(drawing *d, size_t i, const terse_levels levels) {
    longs words[2 * VECTORS];
    ints level[VECTORS];
    terse_vector_random_words(&d->random, d->index + i, words);
    terse_prefetch(d->x + i + d->ahead);
    EACH_VECTOR {
        const float *from = d->x + i + LANES * k;
        const vec x = LOAD(from);
        const longs lower = level_of(d, LOAD_WIDE(from), words[2 * k], levels);
        const longs upper = level_of(d, LOAD_WIDE(from + LANES / 2), words[2 * k + 1], levels);
        ints magnitude = UPPER_BITS(lower, upper);
        if (levels == TERSE_LEVELS_WITHOUT_ZERO)
            magnitude = MOST_INTS(magnitude, LEAST_INTS((ints)ABS(x), SPLAT_INTS(1)));
        const ints minus = (ints)x >> 31;  // -1 where x is negative; -0.0 has magnitude 0
        level[k] = (magnitude ^ minus) - minus;
    }
    terse_pack_64(&d->packing, d->fields, i, ADD_BYTES(BYTES(level), d->s));
}

TERSE_ROUND_FUNCTION uniform_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_UNIFORM); }
TERSE_ROUND_FUNCTION without_zero_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_WITHOUT_ZERO); }
TERSE_ROUND_FUNCTION logarithmic_round(void *d, size_t i) { draw_round(d, i, TERSE_LEVELS_LOGARITHMIC); }

void TERSE_NAMED(terse_stochastic)(uint8_t *fields, const float *x, const terse_codec_options *o, float scale,
                                   size_t from, size_t to) {
    const size_t first = (from + 63) / 64 * 64;  // where draws begin
    size_t done = from;
    if (first + 64 <= to) {
        terse_stochastic_scalar(fields, x, o, scale, from, first);
        drawing d = drawing_of(fields + first / 8 * terse_field_width(o), x + first, o, scale, o->index + first);
        done = first + (o->levels == TERSE_LEVELS_UNIFORM       ? terse_walk(to - first, uniform_round, &d)
                        : o->levels == TERSE_LEVELS_LOGARITHMIC ? terse_walk(to - first, logarithmic_round, &d)
                                                                : terse_walk(to - first, without_zero_round, &d));
    }
    terse_stochastic_scalar(fields, x, o, scale, done, to);
}
