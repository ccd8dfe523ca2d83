// bin-means in the words of terse/vector.h and of ../../shared/fields/fields_<instructions>.h, which a file includes
// before this one.
#include "bin_means.h"
#include "terse/walk.h"

enum { AHEAD = 512 };  // the prefetch distance in elements, as in reductions_vector.h

// The processor's additions to memory set the pace: an element's sum and count change in one.
static void sum_chunk(terse_bins *bins, const float *x, size_t n, unsigned bits, double per_float) {
    const int m = 1 << bits;
    const wide factor = SPLAT_WIDE(per_float), half = SPLAT_WIDE(m / 2);
    const ints last = SPLAT_INTS(m - 1), first = SPLAT_INTS(0);
    terse_chunk_bins chunk = {0};
    size_t i = 0;
    for (; i + TERSE_ROUND <= n; i += TERSE_ROUND) {
        terse_prefetch(x + i + AHEAD);
        ints bin[VECTORS];
        EACH_VECTOR {
            const float *at = x + i + LANES * k;
            const ints whole = TRUNCATE_WIDE(LOAD_WIDE(at) * factor + half, LOAD_WIDE(at + LANES / 2) * factor + half);
            bin[k] = LEAST_INTS(MOST_INTS(whole, first), last);
        }
        uint8_t which[TERSE_ROUND];
        STORE_BYTES(which, BYTES(bin));
#pragma GCC unroll 16
        for (unsigned e = 0; e < TERSE_ROUND; e++) terse_add_to_bin(&chunk, which[e], e % 16, x[i + e]);
    }
    for (; i < n; i++) {
        const int bin = (int)(x[i] * per_float + m / 2);
        terse_add_to_bin(&chunk, (unsigned)(bin < 0 ? 0 : bin < m ? bin : m - 1), i % 16, x[i]);
    }
    terse_end_chunk_of_bins(bins, &chunk, (unsigned)m);
}

typedef struct writing {
    uint8_t *fields;
    const float *x;
    size_t ahead;
    terse_packing packing;
    eight_floats above[2];  // the midpoints of the upper levels, and those of the fourth
} writing;

// One level of the search.
static inline __attribute__((always_inline)) ints child(ints h, vec x, eight_floats above) {
    return COUNT(ABOVE(x, LOOK_UP_8(above, h)), h + h);
}

static inline __attribute__((always_inline)) void write_some(const writing *w, size_t i, const unsigned bits) {
    terse_prefetch(w->x + i + w->ahead);
    ints entry[VECTORS];
    EACH_VECTOR {
        const vec x = LOAD(w->x + i + LANES * k);
        ints h = SPLAT_INTS(1);
#pragma GCC unroll 3
        for (unsigned level = 0; level < 3 && level < bits; level++) h = child(h, x, w->above[0]);
        if (bits == 4) h = child(h, x, w->above[1]);
        entry[k] = h - (1 << bits);
    }
    terse_pack_64(&w->packing, w->fields, i, BYTES(entry));
}

TERSE_ROUND_FUNCTION write_2_bits(void *context, size_t i) { write_some(context, i, 2); }
TERSE_ROUND_FUNCTION write_3_bits(void *context, size_t i) { write_some(context, i, 3); }
TERSE_ROUND_FUNCTION write_4_bits(void *context, size_t i) { write_some(context, i, 4); }

static void write(uint8_t *fields, const float *x, const terse_midpoints *midpoints, unsigned bits, size_t from,
                  size_t to) {
    const size_t first = (from + 7) / 8 * 8;
    size_t done = from;
    if (first < to) {
        terse_bin_means_write(fields, x, midpoints, bits, from, first);
        writing w = {
            fields + first / 8 * bits,
            x + first,
            terse_fields_ahead(to - from),
            terse_packing_of(bits),
            {EIGHT_FLOATS(midpoints->above), EIGHT_FLOATS(midpoints->above + 8)},
        };
        const size_t n = to - first;
        done = first + (bits == 2   ? terse_walk(n, write_2_bits, &w)
                        : bits == 3 ? terse_walk(n, write_3_bits, &w)
                                    : terse_walk(n, write_4_bits, &w));
    }
    terse_bin_means_write(fields, x, midpoints, bits, done, to);
}
