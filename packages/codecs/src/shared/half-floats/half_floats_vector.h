// What bf16 and f16 share in the words of terse/vector.h. <codec>_vector.h defines, before it includes this,
//
//   store_halves(to, x), load_halves(from)      LANES floats to as many halves of the wire, and back
//   LARGEST                                     the bits of the largest |x| that fits
//   INFINITE                                    the bits that an infinite half or a NaN has set
//   plainer                                     the scalar codec
#include "half_table.h"
#include "terse/walk.h"

typedef struct encoding {
    uint8_t *wire;
    const float *x;
    ints most;  // the largest magnitude, as bits
} encoding;

// 64 floats -> 128 bytes.
TERSE_ROUND_FUNCTION encode_round(void *context, size_t i) {
    encoding *e = context;
    terse_prefetch(e->x + i + TERSE_WALK_GROUP);
    terse_prefetch_wire(e->wire + 2 * (i + TERSE_WALK_GROUP), 2 * TERSE_ROUND);
    EACH_VECTOR {
        const vec x = LOAD(e->x + i + LANES * k);
        e->most = MOST_INTS(e->most, (ints)x & 0x7fffffff);
        store_halves(e->wire + 2 * (i + LANES * k), x);
    }
}

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end) {
    encoding e = {wire + 2 * begin, x + begin, SPLAT_INTS(0)};
    const size_t done = begin + terse_walk(end - begin, encode_round, &e);
    // A number that does not fit: the scalar code finds the first one.
    return plainer.encode(wire, x, n, options, LARGEST_INT(e.most) > LARGEST ? begin : done, end);
}

typedef int16_t halves __attribute__((vector_size(4 * LANES)));

typedef struct checking {
    const uint8_t *wire;
    halves infinite;
} checking;

TERSE_ROUND_FUNCTION check_round(void *context, size_t i) {
    checking *c = context;
    terse_prefetch_wire(c->wire + 2 * (i + TERSE_WALK_GROUP), 2 * TERSE_ROUND);
#pragma GCC unroll 8
    for (size_t k = 0; k < 64; k += 2 * LANES) {
        halves some;
        memcpy(&some, c->wire + 2 * (i + k), sizeof some);
        c->infinite |= (some & INFINITE) == INFINITE;
    }
}

static int is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    checking c = {wire + 2 * begin, {0}};
    const size_t done = begin + terse_walk(end - begin, check_round, &c);
    return !ANY(c.infinite) && plainer.is_good(wire, n, options, done, end);
}

typedef struct decoding {
    float *sum;
    const uint8_t *wire;
    vec scale;
} decoding;

TERSE_ROUND_FUNCTION decode_round(void *context, size_t i) {
    const decoding *d = context;
    terse_prefetch(d->sum + i + TERSE_WALK_GROUP);
    terse_prefetch_wire(d->wire + 2 * (i + TERSE_WALK_GROUP), 2 * TERSE_ROUND);
    EACH_VECTOR {
        float *sum = d->sum + i + LANES * k;
        STORE(sum, LOAD(sum) + d->scale * load_halves(d->wire + 2 * (i + LANES * k)));
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end) {
    decoding d = {sum + begin, wire + 2 * begin, SPLAT(options->scale)};
    const size_t done = begin + terse_walk(end - begin, decode_round, &d);
    return plainer.decode_add(sum, wire, n, options, done, end);
}
