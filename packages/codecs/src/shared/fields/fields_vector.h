// fields.h in the words of terse/vector.h and of fields_<instructions>.h, which a file includes before this one.
#include "terse/walk.h"

typedef struct adding {
    float *sum;
    const uint8_t *fields;
    size_t ahead;
    terse_unpacking unpacking;
    ints most;
    wide offset, unit;
    vec scale;
} adding;

TERSE_ROUND_FUNCTION add_round(void *context, size_t i) {
    const adding *a = context;
    terse_prefetch(a->sum + i + a->ahead);
    EACH_VECTOR {
        float *sum = a->sum + i + LANES * k;
        const ints field = LEAST_INTS(terse_unpacked(&a->unpacking, a->fields, i, k), a->most);
        const vec values = NARROW((LOWER_INTS(field) - a->offset) * a->unit, (UPPER_INTS(field) - a->offset) * a->unit);
        STORE(sum, LOAD(sum) + values * a->scale);
    }
}

void TERSE_NAMED(terse_fields_add)(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *m, float scale, size_t from, size_t to) {
    const size_t readable = TERSE_READABLE_FIELDS(n, m->width);
    const size_t first = (from + 7) / 8 * 8, last = to < readable ? to : readable;
    size_t done = from;
    if (first < last) {
        terse_fields_add_scalar(sum, fields, n, m, scale, from, first);
        adding a = {
            sum + first, fields + first / 8 * m->width, terse_fields_ahead(to - from), terse_unpacking_of(m->width),
            SPLAT_INTS((int)m->most), SPLAT_WIDE(m->offset), SPLAT_WIDE(m->unit), SPLAT(scale),
        };
        done = first + terse_walk(last - first, add_round, &a);
    }
    terse_fields_add_scalar(sum, fields, n, m, scale, done, to);
}
