// l1's levels in the words of terse/vector.h and of ../../shared/fields/fields_<instructions>.h, which a file includes
// before this one.
#include "l1.h"
#include "terse/walk.h"

typedef struct quantising {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    terse_packing packing;
    wide factor;
    vec most;  // what becomes level s
    unsigned s;
} quantising;

// In the lower halves.
static inline wide level_of(const quantising *q, wide x) {
    return x * q->factor + SPLAT_WIDE(TERSE_L1_MEND) + SPLAT_WIDE(TERSE_L1_ROUND);
}

TERSE_ROUND_FUNCTION quantise_round(void *context, size_t i) {
    const quantising *q = context;
    terse_prefetch(q->x + i + q->ahead);
    ints level[VECTORS];
    EACH_VECTOR {
        const vec x = LIMIT(LOAD(q->x + i + LANES * k), q->most);
        level[k] = LOWER_BITS(level_of(q, LOWER(x)), level_of(q, UPPER(x)));
    }
    terse_pack_64(&q->packing, q->fields, i, ADD_BYTES(BYTES(level), q->s));
}

static void quantise(uint8_t *fields, const float *x, const terse_codec_options *o, float scale, size_t from,
                     size_t to) {
    const size_t first = (from + 7) / 8 * 8;
    size_t done = from;
    if (first < to) {
        terse_l1_quantise_scalar(fields, x, o, scale, from, first);
        const unsigned s = terse_levels_a_side(o);
        quantising q = {
            fields + first / 8 * terse_field_width(o),
            x + first,
            terse_levels_ahead(o),
            terse_packing_of(terse_field_width(o)),
            SPLAT_WIDE(terse_l1_factor(o, scale)),
            SPLAT((float)(s / terse_l1_factor(o, scale))),
            s,
        };
        done = first + terse_walk(to - first, quantise_round, &q);
    }
    terse_l1_quantise_scalar(fields, x, o, scale, done, to);
}
