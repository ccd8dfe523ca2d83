// Sums of squares on a GPU, with the bits of reductions.c. x (n) -> one sum for each chunk of 64 Ki elements.
#include "reductions.cuh"

#include "../ordered_sums.cuh"

namespace {
struct squares_of {
    static constexpr unsigned SUMS = 1;
    static constexpr bool PAGES_IN_TURN = true;
    const float *x;
    __device__ float load(size_t i) const { return x[i]; }
    __device__ void terms(float loaded, float *of) const { of[0] = loaded; }
};
}  // namespace

cudaError_t sums_of_squares(double *sums, const float *x, size_t n, void *stream) {
    return launch_ordered_sums(sums, n, squares_of{x}, stream);
}
