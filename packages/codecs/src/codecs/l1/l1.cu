// l1 on a GPU: scale = fp32(sum |x| / M), q = clamp(round half even((x s) / (2 scale)), -s, s). x (n) -> scales (scale
// groups), fields (n).
#include "shared/levels/levels.cuh"
#include "l1.h"

struct l1_writing {
    static constexpr bool DRAWS = false;
    int s;
    double most, of_scale;  // s; levels_of_scale: s / 2, exactly
    bool units;

    __device__ double factor(float scale) const { return of_scale / (double)scale; }
    __device__ bool refuses(float x) const { return refused_by_units(units, x); }
    __device__ unsigned zero() const { return (unsigned)s; }
    __device__ unsigned field(float x, double factor, unsigned) const {
        double level = x * factor;
        level = level > most ? most : level;
        level = level < -most ? -most : level;
        return (unsigned)(__double2loint(level + TERSE_L1_MEND + TERSE_L1_ROUND) + s);
    }
};

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    const double s = terse_levels_a_side(o);
    return encode_levels<MEAN_MAGNITUDE>(
        wire, x, n, o, TERSE_L1_REACH,
        l1_writing{(int)s, s, levels_of_scale(o, s / TERSE_L1_REACH), o->units != nullptr}, workspace, bad, stream);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    return decode_levels(sum, wire, n, o, TERSE_L1_REACH, workspace, bad, stream);
}

extern const terse_codec_cuda terse_l1_cuda;
const terse_codec_cuda terse_l1_cuda = {&terse_l1_scalar, levels_workspace_bytes<MEAN_MAGNITUDE>, encode, decode_add};
