// count in the words of terse/vector.h and of shared/fields/fields_<instructions>.h, which a file includes before this
// one.
#include "count.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *fields;
    const float *x;
    terse_packing packing;
    unsigned s;  // levels on each side of 0
    ints bad;    // not 0 in a lane with a number that cannot be written
} encoding;

static inline __attribute__((always_inline)) void sign_round(encoding *e, size_t i, const int zero_is_plus) {
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    mask plus[VECTORS];
    EACH_VECTOR {
        const vec x = LOAD(e->x + i + LANES * k), zero = SPLAT(0.0f);
        e->bad |= (ints)(x - x);
        plus[k] = zero_is_plus ? NOT_BELOW(x, zero) : ABOVE(x, zero);
    }
    const bytes none = {0};
    terse_pack_64(&e->packing, e->fields, i, OR_WHERE(none, WORD(plus), 1));
}

TERSE_ROUND_FUNCTION sign_zero_plus(void *e, size_t i) { sign_round(e, i, 1); }
TERSE_ROUND_FUNCTION sign_zero_minus(void *e, size_t i) { sign_round(e, i, 0); }

TERSE_ROUND_FUNCTION level_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    ints level[VECTORS];
    EACH_VECTOR {
        // Limited before it is rounded. What that changes is too large, NaN or no whole number, and does not equal x.
        const vec x = LOAD(e->x + i + LANES * k);
        level[k] = ROUND(LIMIT(x, SPLAT((float)e->s)));
        e->bad |= (ints)CHOOSE(EQUAL(FLOATS(level[k]), x), SPLAT(0.0f), SPLAT(1.0f));
    }
    terse_pack_64(&e->packing, e->fields, i, ADD_BYTES(BYTES(level), e->s));
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const unsigned bits = terse_field_bits(o), width = terse_field_width(o), s = (1u << (bits - 1)) - 1;
    encoding e = {wire + begin / 8 * width, x + begin, terse_packing_of(width), s, SPLAT_INTS(0)};
    const size_t done = bits > 1                     ? terse_walk(end - begin, level_round, &e)
                        : o->zero == TERSE_ZERO_PLUS ? terse_walk(end - begin, sign_zero_plus, &e)
                                                     : terse_walk(end - begin, sign_zero_minus, &e);
    // A number that does not fit: the scalar code finds the first one.
    return terse_count_encode_scalar(wire, x, n, o, ANY(e.bad) ? begin : begin + done, end);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     size_t begin, size_t end) {
    const terse_field_meaning meaning = terse_count_meaning(o);
    TERSE_NAMED(terse_fields_add)(sum, wire, n, &meaning, o->scale, begin, end);
    return TERSE_CODEC_OK;
}

const terse_codec TERSE_NAMED(terse_count) = {
    .name = "count",
    .implementation = TERSE_IMPLEMENTATION,
    .takes = TERSE_COUNT_TAKES,
    .check = terse_count_check,
    .wire_bytes = terse_count_wire_bytes,
    .encode = encode,
    .decode_add = decode_add,
};
