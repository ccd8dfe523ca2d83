#ifndef TERSE_ADAMW_H
#define TERSE_ADAMW_H
#include "../element.h"
#include "terse/optimizers.h"
#include "terse/walk.h"

extern const terse_adamw terse_adamw_scalar, terse_adamw_avx2, terse_adamw_avx512;

typedef struct adamw_weights {
    float m_in_m, g_in_m;  // beta1, 1 - beta1
    float v_in_v, g_in_v;  // beta2, 1 - beta2
    float keep, rate, epsilon;
    float gradient;  // factor of g
} adamw_weights;

static inline adamw_weights adamw_weights_of(const terse_adamw_options *o) {
    const double b1 = 1 - pow(o->beta1, (double)o->step), root_b2 = sqrt(1 - pow(o->beta2, (double)o->step));
    adamw_weights w = {(float)o->beta1,
                       (float)(1 - o->beta1),
                       (float)o->beta2,
                       (float)(1 - o->beta2),
                       (float)(1 - o->lr * o->weight_decay),
                       (float)(o->lr * root_b2 / b1),
                       (float)(o->eps * root_b2),
                       o->gradient_scale};
    return w;
}

// `scaled` is g gradient.
TERSE_ELEMENT float adamw_m(adamw_weights w, float m, float scaled) { return w.m_in_m * m + w.g_in_m * scaled; }
TERSE_ELEMENT float adamw_v(adamw_weights w, float v, float scaled) {
    return w.v_in_v * v + w.g_in_v * scaled * scaled;
}
TERSE_ELEMENT float adamw_theta(adamw_weights w, float theta, float m, float v) {
    return theta * w.keep - w.rate * m / (sqrtf(v) + w.epsilon);
}

#endif
