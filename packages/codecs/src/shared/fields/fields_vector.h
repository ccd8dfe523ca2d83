// fields.h in the words of terse/vector.h and of fields_<instructions>.h, which a file includes before this one.
#include "terse/walk.h"

typedef struct looking_up {
    float *sum;
    const uint8_t *fields;
    size_t ahead;
    terse_unpacking unpacking;
    eight_floats values[2];
} looking_up;

static inline __attribute__((always_inline)) void look_up_64(const looking_up *l, size_t i, const unsigned width) {
    terse_prefetch(l->sum + i + l->ahead);
    EACH_VECTOR {
        float *sum = l->sum + i + LANES * k;
        const ints field = terse_unpacked(&l->unpacking, l->fields, i, k);
        vec value = LOOK_UP_8(l->values[0], field);
        if (width == 4) value = CHOOSE(INTS_ABOVE(field, SPLAT_INTS(7)), LOOK_UP_8(l->values[1], field), value);
        STORE(sum, LOAD(sum) + value);
    }
}

TERSE_ROUND_FUNCTION look_up_narrow(void *context, size_t i) { look_up_64(context, i, 3); }
TERSE_ROUND_FUNCTION look_up_4_bits(void *context, size_t i) { look_up_64(context, i, 4); }

void TERSE_NAMED(terse_fields_look_up)(float *sum, const uint8_t *fields, size_t n, unsigned width,
                                       const float values[16], size_t from, size_t to) {
    const size_t readable = TERSE_READABLE_FIELDS(n, width);
    const size_t first = (from + 7) / 8 * 8, last = to < readable ? to : readable;
    size_t done = from;
    if (first < last) {
        terse_fields_look_up_scalar(sum, fields, n, width, values, from, first);
        looking_up l = {
            sum + first,
            fields + first / 8 * width,
            terse_fields_ahead(to - from),
            terse_unpacking_of(width),
            {EIGHT_FLOATS(values), EIGHT_FLOATS(values + 8)},
        };
        const size_t length = last - first;
        done = first + (width == 4 ? terse_walk(length, look_up_4_bits, &l) : terse_walk(length, look_up_narrow, &l));
    }
    terse_fields_look_up_scalar(sum, fields, n, width, values, done, to);
}

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

void TERSE_NAMED(terse_fields_add)(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *m,
                                   float scale, size_t from, size_t to) {
    if (m->width >= 2 && m->width <= 4 && to - from >= TERSE_ROUND) {
        float values[16] = {0};
        for (uint32_t field = 0; field < 1u << m->width; field++) values[field] = terse_field_value(field, m) * scale;
        TERSE_NAMED(terse_fields_look_up)(sum, fields, n, m->width, values, from, to);
        return;
    }
    const size_t readable = TERSE_READABLE_FIELDS(n, m->width);
    const size_t first = (from + 7) / 8 * 8, last = to < readable ? to : readable;
    size_t done = from;
    if (first < last) {
        terse_fields_add_scalar(sum, fields, n, m, scale, from, first);
        adding a = {
            sum + first,
            fields + first / 8 * m->width,
            terse_fields_ahead(to - from),
            terse_unpacking_of(m->width),
            SPLAT_INTS((int)m->most),
            SPLAT_WIDE(m->offset),
            SPLAT_WIDE(m->unit),
            SPLAT(scale),
        };
        done = first + terse_walk(last - first, add_round, &a);
    }
    terse_fields_add_scalar(sum, fields, n, m, scale, done, to);
}
