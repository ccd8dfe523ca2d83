// Lion's kernels. All arrays are on the device. Set *bad to UINT64_MAX before; afterwards it is the index of the first
// element whose c is not finite, if there is one. These functions do not wait for the device.
#ifndef TERSE_LION_CUH
#define TERSE_LION_CUH
#include "packed_signs.cuh"
#include "lion.h"

struct lion_planes {
    const uint8_t *of[TALLY_PLANES];
};

cudaError_t lion_vote(uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options,
                      uint64_t *bad, void *stream);
cudaError_t lion_mix(float *c, float *m, const float *g, size_t n, const terse_lion_options *options, void *stream);
cudaError_t lion_step(float *theta, float *m, const float *g, size_t n, const terse_lion_options *options,
                      uint64_t *bad, void *stream);
cudaError_t lion_apply_signs(float *theta, const uint8_t *wire, size_t n, float keep, float scale, void *stream);
cudaError_t lion_apply_ternary(float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep,
                               float scale, void *stream);
cudaError_t lion_apply_tally(float *theta, const lion_planes &planes, size_t ranks, size_t n, float keep, float scale,
                             void *stream);

#endif
