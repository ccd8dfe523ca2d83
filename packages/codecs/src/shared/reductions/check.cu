// Checks the reductions by themselves: a scale is rounded to fp32, which would hide that a sum has another order.
#include "check.h"
#include "shared/reductions/reductions.cuh"
#include "shared/reductions/reductions.h"
#include "shared/scale-groups/scale_groups.h"

namespace {
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

terse_codec_status reduce(double *magnitudes, double *squares, float *most, const float *x, size_t n,
                          const terse_codec_options *o, void *workspace) {
    scale_groups in;
    terse_codec_status status = put_scale_groups(&in, n, o, workspace, nullptr);
    void *const partials = (uint8_t *)workspace + bytes_of_ends(o);
    const slots s = slots_of(in, TERSE_REDUCTION_CHUNK), of_largest = slots_of(in, LARGEST_CHUNK);
    if (status == TERSE_CODEC_OK) status = sum_all<MAGNITUDES>((double *)partials, x, nullptr, nullptr, s, nullptr);
    if (status == TERSE_CODEC_OK)
        status = launch(all_sums, divided_up(in.count, 8), 256, nullptr, magnitudes, (const double *)partials, s);
    if (status == TERSE_CODEC_OK) status = sum_all<SQUARES>((double *)partials, x, nullptr, nullptr, s, nullptr);
    if (status == TERSE_CODEC_OK)
        status = launch(all_sums, divided_up(in.count, 8), 256, nullptr, squares, (const double *)partials, s);
    if (status == TERSE_CODEC_OK) status = largest_all((unsigned *)partials, x, of_largest, nullptr);
    if (status == TERSE_CODEC_OK)
        status = launch(all_largest, divided_up(in.count, 8), 256, nullptr, most, (const unsigned *)partials,
                        of_largest);
    return status;
}

size_t workspace_bytes(size_t n, const terse_codec_options *o) {
    return bytes_of_ends(o) + 8 * slot_count(n, o, LARGEST_CHUNK);
}
}  // namespace

// Compares sums in fp64 to the last bit. Scale groups are long enough for many chunks, chunks for many rounds.
void terse_check_reductions_cuda() {
    const struct {
        size_t n, block;
        int segments;
    } all[] = {{1, 0, 0},          {70001, 0, 0},    {((size_t)130 << 16) + 777, 0, 0},
               {700003, 70000, 0}, {200000, 512, 0}, {300001, 0, 1}};
    const long before = checks;
    for (const auto &c : all) {
        configuration way = {};
        way.options.block = c.block, way.segments = c.segments;
        const terse_codec_options o = options_of(&way, c.n);
        const size_t count = terse_scale_group_count(c.n, &o);
        std::vector<float> x(c.n);
        for (float &value : x) value = gradient();
        device_bytes x_there(4 * c.n, 4), magnitudes(8 * count, 0), squares(8 * count, 0), most(4 * count, 0),
            workspace(workspace_bytes(c.n, &o), 0);
        x_there.put(x.data());
        expect(reduce((double *)magnitudes.at, (double *)squares.at, (float *)most.at, (const float *)x_there.at, c.n,
                      &o, workspace.at) == TERSE_CODEC_OK,
               "reductions", "cuda", c.n, "status");
        std::vector<uint8_t> expected[3] = {std::vector<uint8_t>(8 * count), std::vector<uint8_t>(8 * count),
                                            std::vector<uint8_t>(4 * count)};
        for (size_t r = 0; r < count; r++) {
            const size_t begin = terse_scale_group_begin(r, c.n, &o),
                         length = terse_scale_group_begin(r + 1, c.n, &o) - begin;
            const double sums[2] = {terse_reductions_scalar.sum_of_magnitudes(x.data() + begin, length),
                                    terse_reductions_scalar.sum_of_squares(x.data() + begin, length)};
            const float largest = terse_reductions_scalar.largest(x.data() + begin, length);
            std::memcpy(&expected[0][8 * r], &sums[0], 8), std::memcpy(&expected[1][8 * r], &sums[1], 8),
                std::memcpy(&expected[2][4 * r], &largest, 4);
        }
        expect(magnitudes.get() == expected[0], "reductions", "cuda", c.n, "sums of magnitudes");
        expect(squares.get() == expected[1], "reductions", "cuda", c.n, "sums of squares");
        expect(most.get() == expected[2], "reductions", "cuda", c.n, "largest magnitudes");
        expect(workspace.margins_are_whole(), "reductions", "cuda", c.n, "bytes outside the workspace");
    }
    std::printf("reductions by cuda: %ld checks\n", checks - before);
}
