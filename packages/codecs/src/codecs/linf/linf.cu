// linf on a GPU: scale = max |x|, levels drawn as stochastic.h says. x (n) -> scales (scale groups), fields (n).
#include "shared/levels/stochastic.cuh"
#include "linf.h"

template <terse_levels LEVELS>
static terse_codec_status encode_with(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,
                                      void *workspace, uint64_t *bad, void *stream) {
    return encode_levels<LARGEST_MAGNITUDE>(wire, x, n, o, 1.0, stochastic_writing_of<LEVELS>(o), workspace, bad,
                                            stream);
}

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    if (o->levels == TERSE_LEVELS_LOGARITHMIC)
        return encode_with<TERSE_LEVELS_LOGARITHMIC>(wire, x, n, o, workspace, bad, stream);
    if (o->levels == TERSE_LEVELS_WITHOUT_ZERO)
        return encode_with<TERSE_LEVELS_WITHOUT_ZERO>(wire, x, n, o, workspace, bad, stream);
    return encode_with<TERSE_LEVELS_UNIFORM>(wire, x, n, o, workspace, bad, stream);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    return decode_levels(sum, wire, n, o, 1.0, workspace, bad, stream);
}

extern const terse_codec_cuda terse_linf_cuda;
const terse_codec_cuda terse_linf_cuda = {&terse_linf_scalar, levels_workspace_bytes<LARGEST_MAGNITUDE>, encode,
                                          decode_add};
