#ifndef TERSE_SGD_ELEMENT_H
#define TERSE_SGD_ELEMENT_H
#include "../element.h"
#include "terse/optimizers.h"

typedef struct sgd_weights {
    float gradient, decay, lr;
    float m_in_m, d_in_m;  // momentum, 1 - dampening; at the first update 0, 1
    float m_in_u;          // with nesterov
} sgd_weights;

static inline sgd_weights sgd_weights_of(const terse_sgd_options *o) {
    sgd_weights w = {o->gradient_scale,
                     (float)o->weight_decay,
                     (float)o->lr,
                     o->first ? 0.0f : (float)o->momentum,
                     o->first ? 1.0f : (float)(1 - o->dampening),
                     (float)o->momentum};
    return w;
}

// d = g gradient + decay theta;  m = m_in_m m + d_in_m d;  u = m, or d + m_in_u m with nesterov
TERSE_ELEMENT float decayed_gradient(sgd_weights w, float g, float theta) { return g * w.gradient + w.decay * theta; }
TERSE_ELEMENT float next_momentum(sgd_weights w, float m, float d) { return w.m_in_m * m + w.d_in_m * d; }
TERSE_ELEMENT float sgd_update(sgd_weights w, int nesterov, float d, float m) {
    return nesterov ? d + w.m_in_u * m : m;
}

#endif
