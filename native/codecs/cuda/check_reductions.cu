// The reductions alone, for the checks: a scale is rounded to fp32, which would hide a sum in another order. And the look back of top-k's
// tiles: on a GPU its length is chance, and in the emulator, where blocks come one after another, it is always 1.
#include "check.h"
#include "shared/reductions/reductions.cuh"
#include "codecs/top-k/top_k.cuh"

__global__ void all_sums(double *sums, const double *partials, slots s) {
    for (size_t r = first_warp(); r < s.in.count; r += all_warps()) {
        const double sum = sum_of_group(partials, s, r);
        if (lane_of_warp() == 0) sums[r] = sum;
    }
}

__global__ void all_largest(float *most, const unsigned *partials, slots s) {
    for (size_t r = first_warp(); r < s.in.count; r += all_warps()) {
        const float largest = largest_of_group(partials, s, r);
        if (lane_of_warp() == 0) most[r] = largest;
    }
}

terse_codec_status reduce_for_check(double *magnitudes, double *squares, float *most, const float *x, size_t n, const terse_codec_options *o, void *workspace) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, nullptr);
    void *const partials = (uint8_t *)workspace + bytes_of_ends(o);
    const slots s = slots_of(in, TERSE_REDUCTION_CHUNK), of_largest = slots_of(in, LARGEST_CHUNK);
    if (status == TERSE_CODEC_OK) status = sum_all<MAGNITUDES>((double *)partials, x, nullptr, nullptr, s, nullptr);
    if (status == TERSE_CODEC_OK) status = launch(all_sums, divided_up(in.count, 8), 256, nullptr, magnitudes, (const double *)partials, s);
    if (status == TERSE_CODEC_OK) status = sum_all<SQUARES>((double *)partials, x, nullptr, nullptr, s, nullptr);
    if (status == TERSE_CODEC_OK) status = launch(all_sums, divided_up(in.count, 8), 256, nullptr, squares, (const double *)partials, s);
    if (status == TERSE_CODEC_OK) status = largest_all((unsigned *)partials, x, of_largest, nullptr);
    if (status == TERSE_CODEC_OK) status = launch(all_largest, divided_up(in.count, 8), 256, nullptr, most, (const unsigned *)partials, of_largest);
    return status;
}

size_t workspace_for_check(size_t n, const terse_codec_options *o) { return bytes_of_ends(o) + 8 * slot_count(n, o, LARGEST_CHUNK); }

__global__ void look_back(unsigned long long *before, unsigned long long *states, size_t tile, unsigned long long own) {
    const unsigned long long all = before_tile(states, tile, own);
    if (lane_of_warp() == 0) *before = all;
}

terse_codec_status look_back_for_check(unsigned long long *before, unsigned long long *states, size_t tile, unsigned long long own) {
    return launch(look_back, 1, WARP, nullptr, before, states, tile, own);
}
