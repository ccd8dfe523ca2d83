#include "fields.h"

void terse_fields_add_scalar(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *m, float scale,
                             size_t from, size_t to) {
    (void)n;
    for (size_t i = from; i < to; i++) sum[i] += terse_field_value(terse_field(fields, i, m->width), m) * scale;
}

void terse_fields_look_up_scalar(float *sum, const uint8_t *fields, size_t n, unsigned width, const float values[16],
                                 size_t from, size_t to) {
    (void)n;
    for (size_t i = from; i < to; i++) sum[i] += values[terse_field(fields, i, width)];
}
