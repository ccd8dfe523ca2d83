#ifndef TERSE_MOMENTS_ELEMENT_H
#define TERSE_MOMENTS_ELEMENT_H
#include "../element.h"
#include "terse/optimizers.h"

// Adam's moments. `scaled` is g gradient.
typedef struct moments_weights {
    float m_in_m, g_in_m;  // beta1, 1 - beta1
    float v_in_v, g_in_v;  // beta2, 1 - beta2
    float gradient;        // factor of g
} moments_weights;

static inline moments_weights moments_weights_of(double beta1, double beta2, float gradient_scale) {
    moments_weights w = {(float)beta1, (float)(1 - beta1), (float)beta2, (float)(1 - beta2), gradient_scale};
    return w;
}

TERSE_ELEMENT float next_m(moments_weights w, float m, float scaled) { return w.m_in_m * m + w.g_in_m * scaled; }
TERSE_ELEMENT float next_v(moments_weights w, float v, float scaled) {
    return w.v_in_v * v + w.g_in_v * scaled * scaled;
}

// An update of Adam's form.
typedef struct adam_form {
    float first, second, epsilon, decay;
} adam_form;

static inline adam_form adam_form_of(const terse_adam_update *update) {
    adam_form f = {(float)update->first, (float)update->second, (float)update->eps, (float)update->weight_decay};
    return f;
}

TERSE_ELEMENT float update_of(adam_form f, float theta, float m, float v) {
    return m * f.first / (sqrtf(v) * f.second + f.epsilon) + f.decay * theta;
}

// 1-bit LAMB's second variance. `epsilon` is added to what the ratio is taken of: the roots, or their squares.
typedef struct refresh_weights {
    float last_in_g, g_in_m, v_in_v, g_in_v, epsilon;
} refresh_weights;

static inline refresh_weights refresh_weights_of(const terse_refresh_options *o) {
    const double epsilon = o->root ? o->eps : o->eps * o->eps;
    refresh_weights w = {(float)o->beta1, (float)(1 - o->beta1), (float)o->beta2, (float)(1 - o->beta2),
                         (float)epsilon};
    return w;
}

TERSE_ELEMENT float refreshed(refresh_weights w, float fresh, float m, float last) {
    const float g = (m - w.last_in_g * last) / w.g_in_m;
    return w.v_in_v * fresh + w.g_in_v * g * g;
}

// 0, which no maximum takes, of an element that had no gradient before.
TERSE_ELEMENT float ratio_of(refresh_weights w, int root, float frozen, float fresh) {
    const float ratio = root ? (sqrtf(frozen) + w.epsilon) / (sqrtf(fresh) + w.epsilon)
                             : (frozen + w.epsilon) / (fresh + w.epsilon);
    return frozen > 0.0f ? ratio : 0.0f;
}

#endif
