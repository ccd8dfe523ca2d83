// qsgd on a GPU: scale = fp32(sqrt(sum x^2)), levels drawn as stochastic.h says. x (n) -> scales (scale groups), fields
// (n).
#include "shared/levels/stochastic.cuh"
#include "qsgd.h"

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    return encode_levels<NORM>(wire, x, n, o, 1.0, stochastic_writing_of<TERSE_LEVELS_UNIFORM>(o), workspace, bad,
                               stream);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    return decode_levels(sum, wire, n, o, 1.0, workspace, bad, stream);
}

extern const terse_codec_cuda terse_qsgd_cuda;
const terse_codec_cuda terse_qsgd_cuda = {&terse_qsgd_scalar, levels_workspace_bytes<NORM>, encode, decode_add};
