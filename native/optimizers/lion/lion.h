#ifndef TERSE_LION_H
#define TERSE_LION_H
#include "terse/optimizers.h"
#include "terse/walk.h"

extern const terse_lion terse_lion_scalar, terse_lion_avx2, terse_lion_avx512;

enum { TALLY_PLANES = 11 };  // bits of TERSE_TALLY_MAX_RANKS

typedef struct lion_weights {
    float m_in_c, g_in_c;  // beta1, 1 - beta1
    float m_in_m, g_in_m;  // beta2, 1 - beta2
    float keep, scale;
    float gradient;  // factor of g
} lion_weights;

static inline lion_weights lion_weights_of(const terse_lion_options *o) {
    const lion_weights weights = {(float)o->beta1,
                                  (float)(1 - o->beta1),
                                  (float)o->beta2,
                                  (float)(1 - o->beta2),
                                  (float)(1 - o->lr * o->weight_decay),
                                  (float)-o->lr,
                                  o->gradient_scale};
    return weights;
}

static inline int tally_planes(size_t ranks) {
    int planes = 0;
    for (; ranks; ranks >>= 1) planes++;
    return planes;
}

#endif
