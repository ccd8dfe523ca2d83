// scaled-sign on a GPU: one scale per scale group, the root of its mean square, then the bits of sign.
// x (n) -> scales (scale groups) and bits (ceil(n / 8) bytes).
//
// The scales come from partial sums of squares, in the order of reductions.h. The kernel of sign writes the bits; those
// of scale groups whose scale is 0 are cleared.
#include "shared/reductions/reductions.cuh"
#include "scaled_sign.h"
#include "shared/signs/signs.cuh"

extern const terse_codec_cuda terse_sign_cuda;

// A warp per scale group.
__global__ void __launch_bounds__(256)
    scaled_sign_scales(uint8_t *wire, const double *partials, slots s, const uint8_t *hold) {
    for (size_t r = first_warp(); r < s.in.count; r += all_warps()) {
        const size_t begin = s.in.begin(r), end = s.in.begin(r + 1);
        unsigned long long spoken = end - begin;
        if (hold) {
            spoken = 0;
            for (size_t i = begin + lane_of_warp(); i < end; i += WARP) spoken += !bit_at(hold, i);
            for (unsigned stride = 16; stride; stride /= 2) spoken += __shfl_xor_sync(EVERY_LANE, spoken, stride);
        }
        const double squares = sum_of_group(partials, s, r);
        if (lane_of_warp() == 0) put_scale(wire, r, spoken ? (float)sqrt(squares / (double)spoken) : 0.0f);
    }
}

// One thread for each byte of bits, because a scale group may end within a byte.
__global__ void __launch_bounds__(256) scaled_sign_clear(uint8_t *bits, const uint8_t *wire, scale_groups in) {
    if (in.count == 1 && scale_on_wire(wire, 0) != 0.0f) return;
    for (size_t i = 8 * first_thread(); i < in.n; i += 8 * all_threads()) {
        unsigned kept = 0xff;
        size_t r = in.of(i);
        if (i + 8 <= in.begin(r + 1)) {
            if (scale_on_wire(wire, r) == 0.0f) kept = 0;
        } else {
            for (unsigned lane = 0; lane < 8 && i + lane < in.n; lane++) {
                while (i + lane >= in.begin(r + 1)) r++;
                if (scale_on_wire(wire, r) == 0.0f) kept &= ~(1u << lane);
            }
        }
        if (kept != 0xff) bits[i / 8] = (uint8_t)(bits[i / 8] & kept);
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(256)
    scaled_sign_decode_add(float *sum, const uint8_t *wire, const uint8_t *bits, const uint8_t *hold, scale_groups in,
                           float scale, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t base = first_warp() * DECODED; base < in.n; base += all_warps() * DECODED) {
        const size_t end = base + DECODED < in.n ? base + DECODED : in.n, first = in.of(base);
        const bool one_group = end <= in.begin(first + 1);
        if (ALIGNED && one_group && base + DECODED <= in.n) {
            add_signs(sum, bits, hold, base, scale * scale_on_wire(wire, first));
        } else {
            for (size_t i = base + lane_of_warp(); i < end; i += WARP) {
                const float value = scale * scale_on_wire(wire, one_group ? first : in.of(i));
                if (!hold || !bit_at(hold, i)) sum[i] += bit_at(bits, i) ? value : -value;
            }
        }
    }
}

static size_t workspace_bytes(size_t n, const terse_codec_options *o) {
    return bytes_of_ends(o) + 8 * slot_count(n, o, TERSE_REDUCTION_CHUNK);
}

// 256 threads throughout: 8 warps, 8 blocks a multiprocessor.
static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const slots s = slots_of(in, TERSE_REDUCTION_CHUNK);
    double *const partials = (double *)((uint8_t *)workspace + bytes_of_ends(o));
    uint8_t *const bits = wire + 4 * in.count;
    if (status == TERSE_CODEC_OK) status = sum_all<SQUARES>(partials, x, o->hold, nullptr, s, stream);
    if (status == TERSE_CODEC_OK)
        status = launch(scaled_sign_scales, divided_up(in.count, 8), 256, stream, wire, partials, s, o->hold);
    if (status == TERSE_CODEC_OK) status = terse_sign_cuda.encode(bits, x, n, o, nullptr, bad, stream);
    if (status == TERSE_CODEC_OK)
        status = launch(scaled_sign_clear, divided_up(n, 8 * 256), 256, stream, bits, wire, in);
    return status;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, stream);
    const uint8_t *const bits = wire + 4 * in.count;
    if (status == TERSE_CODEC_OK)
        status = launch(check_scales, divided_up(in.count, 256), 256, stream, wire, in.count, 1.0, bad);
    const auto kernel = multiples_of(16, sum) && multiples_of(4, bits, o->hold) ? scaled_sign_decode_add<true>
                                                                                : scaled_sign_decode_add<false>;
    if (status == TERSE_CODEC_OK)
        status = launch(kernel, divided_up(n, 8 * DECODED), 256, stream, sum, wire, bits, o->hold, in, o->scale, bad);
    return status;
}

extern const terse_codec_cuda terse_scaled_sign_cuda;
const terse_codec_cuda terse_scaled_sign_cuda = {&terse_scaled_sign_scalar, workspace_bytes, encode, decode_add};
