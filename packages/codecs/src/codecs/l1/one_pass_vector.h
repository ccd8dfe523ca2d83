// one_pass.h in the words of terse/vector.h and of ../../shared/fields/fields_<instructions>.h, which a file includes
// before this one.
#include "one_pass.h"
#include "quantise_vector.h"

enum {
    AHEAD = 512,               // elements that are asked for ahead, as in reductions_vector.h
    WIDES = 16 / (LANES / 2),  // that hold the partial sums
};

typedef struct reading {
    const float *x;
    uint8_t *fields;
    vec low, middle, high, most;  // most: of a magnitude, beyond level s by either factor
    unsigned s;
    terse_packing packing;
    wide sums[4][WIDES];  // of each chunk
} reading;

static inline __attribute__((always_inline)) bytes near_levels(const reading *r, const float *x, vec factor) {
    ints level[VECTORS];
    EACH_VECTOR level[k] = ROUND(LIMIT(LOAD(x + LANES * k), r->most) * factor);
    return LIMIT_BYTES(BYTES(level), r->s);
}

static inline __attribute__((always_inline)) uint64_t read_round(void *context, size_t c, size_t i) {
    reading *r = context;
    const float *x = r->x + i;
    terse_prefetch(x + AHEAD);
    EACH_VECTOR {
        r->sums[c][2 * k % WIDES] += WIDE_ABS(LOAD_WIDE(x + LANES * k));
        r->sums[c][(2 * k + 1) % WIDES] += WIDE_ABS(LOAD_WIDE(x + LANES * k + LANES / 2));
    }
    bytes levels = near_levels(r, x, r->low);
    const uint64_t undecided = DIFFER(levels, near_levels(r, x, r->high));
    if (undecided) levels = near_levels(r, x, r->middle);
    terse_pack_64(&r->packing, r->fields, i, ADD_BYTES(levels, r->s));
    return undecided;
}

static size_t read_group(double of_chunks[4], uint8_t *fields, terse_l1_undecided *undecided, const float *x,
                         const terse_l1_guess *g) {
    reading r = {
        x,
        fields,
        SPLAT(g->low),
        SPLAT(g->middle),
        SPLAT(g->high),
        SPLAT((float)(g->s + 1) / g->low),
        g->s,
        terse_packing_of(g->width),
        {{{0}}},
    };
    const size_t count = terse_l1_walk_group(undecided, x, read_round, &r);
    for (int c = 0; c < 4; c++) {
        double partial[16];
        for (int j = 0; j < WIDES; j++) STORE_WIDE(partial + LANES / 2 * j, r.sums[c][j]);
        of_chunks[c] = terse_reductions_fold(partial);
    }
    return count;
}

const terse_l1_kernel TERSE_NAMED(terse_l1_kernel) = {&TERSE_NAMED(terse_reductions), quantise, read_group};

static int encode_in_one_pass(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {
    return terse_l1_encode_in_one_pass(&TERSE_NAMED(terse_l1_kernel), wire, x, n, o);
}
