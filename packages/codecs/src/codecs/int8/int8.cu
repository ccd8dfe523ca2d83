// int8 on a GPU: scale = max |x|, q = round half even(x 127 / scale) in two's complement. x (n) -> scales (scale
// groups), bytes (n). Fields of 8 bits, and linf's scales.
#include "shared/levels/levels.cuh"
#include "int8.h"

struct int8_writing {
    static constexpr bool DRAWS = false;

    __device__ double factor(float scale) const { return 127.0 / (double)scale; }
    __device__ bool refuses(float) const { return false; }
    __device__ unsigned zero() const { return 0; }
    __device__ unsigned field(float x, double factor, unsigned) const {
        return (unsigned)nearest_whole((double)x * factor) & 0xff;
    }
};

struct int8_reading {
    __device__ double unit(float scale) const { return (double)scale / 127.0; }
    __device__ float value(unsigned field, double unit) const { return (float)((double)(int8_t)field * unit); }
};

// -128, which no encoder writes, overflows fp32 if the scale is near the largest float. A warp per scale group.
__global__ void __launch_bounds__(256)
    int8_check(const uint8_t *wire, const uint8_t *bytes, scale_groups in, uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t r = first_warp(); r < in.count; r += all_warps()) {
        if (magnitude_bits((float)(-128.0 * ((double)scale_on_wire(wire, r) / 127.0))) < INFINITE) continue;
        for (size_t i = in.begin(r) + lane_of_warp(); i < in.begin(r + 1); i += WARP)
            if (bytes[i] == 0x80) refuse(bad, i);
    }
}

static terse_codec_options with_8_bits(const terse_codec_options *o) {
    terse_codec_options with = *o;
    with.bits = with.width = 8;
    return with;
}

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    const terse_codec_options with = with_8_bits(o);
    return encode_levels<LARGEST_MAGNITUDE>(wire, x, n, &with, 1.0, int8_writing{}, workspace, bad, stream);
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const uint8_t *const bytes = wire + 4 * in.count;
    if (status == TERSE_CODEC_OK)
        status = launch(check_scales, divided_up(in.count, 256), 256, stream, wire, in.count, 1.0, bad);
    if (status == TERSE_CODEC_OK)
        status = launch(int8_check, divided_up(in.count, 8), 256, stream, wire, bytes, in, bad);
    if (status == TERSE_CODEC_OK)
        status = launch_read_fields(sum, bytes, n, 8, {in, wire}, o, int8_reading{}, bad, stream);
    return status;
}

extern const terse_codec_cuda terse_int8_cuda;
const terse_codec_cuda terse_int8_cuda = {&terse_int8_scalar, levels_workspace_bytes<LARGEST_MAGNITUDE>, encode,
                                          decode_add};
