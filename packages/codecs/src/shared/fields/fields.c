#include "fields.h"

void terse_fields_add_scalar(float *sum, const uint8_t *fields, size_t n, const terse_field_meaning *m, float scale, size_t from, size_t to) {
    (void)n;
    for (size_t i = from; i < to; i++) {
        const uint32_t field = terse_field(fields, i, m->width);
        const float value = (float)(((double)(field < m->most ? field : m->most) - m->offset) * m->unit);
        sum[i] += value * scale;
    }
}
