// ternary in the words of terse/vector.h, which a file includes before this one.
#include "ternary.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *plus, *nonzero;
    const float *x;
    ints bad;  // the OR of all x - x: +0 for every finite x, NaN otherwise
} encoding;

// 64 floats -> 8 bytes of each plane.
TERSE_ROUND_FUNCTION encode_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + 2 * TERSE_PAGE);  // measured: one page, and four, take a twentieth to a tenth longer
    mask plus[VECTORS], zero[VECTORS];
    EACH_VECTOR {
        const vec x = LOAD(e->x + i + LANES * k);
        e->bad |= (ints)(x - x);
        plus[k] = ABOVE(x, SPLAT(0.0f));
        zero[k] = EQUAL(x, SPLAT(0.0f));
    }
    terse_store_word(e->plus + i / 8, WORD(plus));
    terse_store_word(e->nonzero + i / 8, ~WORD(zero));
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end) {
    encoding e = {wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8, x + begin, SPLAT_INTS(0)};
    const size_t done = begin + terse_walk(end - begin, encode_round, &e);
    // A number is not finite: the scalar kernel finds the first one.
    return terse_ternary_scalar.encode(wire, x, n, options, ANY(e.bad) ? begin : done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *plus, *nonzero;
    vec if_plus, if_minus, if_zero;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    const uint64_t plus = terse_load_word(d->plus + i / 8), nonzero = terse_load_word(d->nonzero + i / 8);
    EACH_VECTOR {
        const vec sign = CHOOSE(LANES_OF(plus, k), d->if_plus, d->if_minus);
        STORE(d->sum + i + LANES * k, LOAD(d->sum + i + LANES * k) + CHOOSE(LANES_OF(nonzero, k), sign, d->if_zero));
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end) {
    const float scale = options->scale;
    decoding d = {sum + begin,  wire + begin / 8, wire + terse_ternary_plane(n) + begin / 8,
                  SPLAT(scale), SPLAT(-scale),    SPLAT(scale * 0.0f)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_ternary_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec TERSE_NAMED(terse_ternary) = {
    .name = "ternary",
    .implementation = TERSE_IMPLEMENTATION,
    .wire_bytes = terse_ternary_wire_bytes,
    .encode = encode,
    .decode_add = decode_add,
};
