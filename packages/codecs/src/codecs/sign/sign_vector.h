// sign in the words of terse/vector.h, which a file includes before this one.
#include "sign.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *wire;
    const float *x;
    const uint8_t *hold;
    ints bad;  // the OR of all x - x: +0 for every finite x, NaN otherwise
} encoding;

// 64 floats -> 8 bytes.
static inline __attribute__((always_inline)) void encode_round(encoding *e, size_t i, const int zero_is_plus) {
    terse_prefetch(e->x + i + 2 * TERSE_PAGE);  // measured: one page, and four, take a twentieth to a tenth longer
    mask plus[VECTORS];
    EACH_VECTOR {
        const vec x = LOAD(e->x + i + LANES * k), zero = SPLAT(0.0f);
        e->bad |= (ints)(x - x);
        plus[k] = zero_is_plus ? NOT_BELOW(x, zero) : ABOVE(x, zero);
    }
    const uint64_t word = WORD(plus);
    terse_store_word(e->wire + i / 8, e->hold ? word & ~terse_load_word(e->hold + i / 8) : word);
}

TERSE_ROUND_FUNCTION encode_zero_plus(void *context, size_t i) { encode_round(context, i, 1); }
TERSE_ROUND_FUNCTION encode_zero_minus(void *context, size_t i) { encode_round(context, i, 0); }

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end) {
    encoding e = {wire + begin / 8, x + begin, options->hold ? options->hold + begin / 8 : NULL, SPLAT_INTS(0)};
    const int zero_is_plus = options->zero == TERSE_ZERO_PLUS;
    const size_t done = zero_is_plus ? terse_walk(end - begin, encode_zero_plus, &e)
                                     : terse_walk(end - begin, encode_zero_minus, &e);
    // A number is not finite: the scalar kernel finds the first one.
    return terse_sign_scalar.encode(wire, x, n, options, ANY(e.bad) ? begin : begin + done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *wire, *hold;
    vec plus, minus;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    const uint64_t word = terse_load_word(d->wire + i / 8), spoken = d->hold ? ~terse_load_word(d->hold + i / 8) : 0;
    EACH_VECTOR {
        const vec before = LOAD(d->sum + i + LANES * k), value = CHOOSE(LANES_OF(word, k), d->plus, d->minus);
        const vec after = before + value;
        STORE(d->sum + i + LANES * k, d->hold ? CHOOSE(LANES_OF(spoken, k), after, before) : after);
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end) {
    decoding d = {sum + begin, wire + begin / 8, options->hold ? options->hold + begin / 8 : NULL,
                  SPLAT(options->scale), SPLAT(-options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return terse_sign_scalar.decode_add(sum, wire, n, options, done, end);
}

const terse_codec TERSE_NAMED(terse_sign) = {
    .name = "sign",
    .implementation = TERSE_IMPLEMENTATION,
    .takes = TERSE_SIGN_TAKES,
    .wire_bytes = terse_sign_wire_bytes,
    .encode = encode,
    .decode_add = decode_add,
};
