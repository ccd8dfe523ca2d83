#ifndef TERSE_ADAMW_H
#define TERSE_ADAMW_H
#include <math.h>

#include "terse/optimizers.h"

extern const terse_adamw terse_adamw_scalar, terse_adamw_avx2;

typedef struct adamw_weights {
    float m_in_m, g_in_m;  // beta1, 1 - beta1
    float v_in_v, g_in_v;  // beta2, 1 - beta2
    float keep, rate, epsilon;
    float gradient;  // factor of g
} adamw_weights;

static inline adamw_weights adamw_weights_of(const terse_adamw_options *o) {
    const double b1 = 1 - pow(o->beta1, (double)o->step), root_b2 = sqrt(1 - pow(o->beta2, (double)o->step));
    return (adamw_weights){(float)o->beta1, (float)(1 - o->beta1), (float)o->beta2, (float)(1 - o->beta2),
                           (float)(1 - o->lr * o->weight_decay), (float)(o->lr * root_b2 / b1), (float)(o->eps * root_b2), o->gradient_scale};
}

#endif
