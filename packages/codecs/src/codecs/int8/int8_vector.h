// int8 in the words of terse/vector.h, which a file includes before this one.
#include "int8.h"
#include "terse/walk.h"

typedef struct writing {
    uint8_t *bytes;
    const float *x;
    size_t ahead;
    wide levels;
} writing;

static inline __attribute__((always_inline)) ints level(const writing *w, size_t i) {
    return ROUND_WIDE(LOAD_WIDE(w->x + i) * w->levels, LOAD_WIDE(w->x + i + LANES / 2) * w->levels);
}

TERSE_ROUND_FUNCTION write_round(void *context, size_t i) {
    const writing *w = context;
    terse_prefetch(w->x + i + w->ahead);
    terse_prefetch_wire(w->bytes + i + w->ahead, TERSE_ROUND);
    ints levels[VECTORS];
    EACH_VECTOR levels[k] = level(w, i + LANES * k);
    STORE_BYTES(w->bytes + i, BYTES(levels));
}

static void write(uint8_t *bytes, const float *x, size_t begin, size_t end, double levels) {
    writing w = {bytes + begin, x + begin, terse_int8_ahead(end - begin), SPLAT_WIDE(levels)};
    size_t done = terse_walk(end - begin, write_round, &w);
    for (; done + LANES <= end - begin; done += LANES) STORE_INT8(w.bytes + done, level(&w, done));
    terse_int8_write(bytes, x, begin + done, end, levels);
}

typedef struct reading {
    float *sum;
    const uint8_t *bytes;
    size_t ahead;
    wide step;
    vec scale;
} reading;

static inline __attribute__((always_inline)) void read_vector(const reading *r, size_t i) {
    const ints q = LOAD_INT8(r->bytes + i);
    STORE(r->sum + i, LOAD(r->sum + i) + r->scale * NARROW(LOWER_INTS(q) * r->step, UPPER_INTS(q) * r->step));
}

TERSE_ROUND_FUNCTION read_round(void *context, size_t i) {
    const reading *r = context;
    terse_prefetch(r->sum + i + r->ahead);
    terse_prefetch_wire(r->bytes + i + r->ahead, TERSE_ROUND);
    EACH_VECTOR read_vector(r, i + LANES * k);
}

static void read(float *sum, const uint8_t *bytes, size_t begin, size_t end, double step, float scale) {
    reading r = {sum + begin, bytes + begin, terse_int8_ahead(end - begin), SPLAT_WIDE(step), SPLAT(scale)};
    size_t done = terse_walk(end - begin, read_round, &r);
    for (; done + LANES <= end - begin; done += LANES) read_vector(&r, done);
    terse_int8_read(sum, bytes, begin + done, end, step, scale);
}
