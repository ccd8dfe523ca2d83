// The host side of terse/optimizers_cuda.h: copies signs between host memory and a scratch buffer on the device, and
// launches the kernels.
#include "terse/optimizers_cuda.h"

#include <vector>

#include "../adamw/adamw.cuh"
#include "../lion/lion.cuh"
#include "../low-rank/low_rank.cuh"
#include "../moments/moments.cuh"
#include "../reductions/reductions.cuh"
#include "../sgd/sgd.cuh"
#include "scratch.cuh"

namespace {
cudaError_t last_error = cudaSuccess;

terse_optimizer_status status_of(cudaError_t error) {
    if (error == cudaSuccess) return TERSE_OPTIMIZER_OK;
    cudaGetLastError();  // clears CUDA's own record, so that no later call reports this error again
    last_error = error;
    return TERSE_OPTIMIZER_UNAVAILABLE;
}

size_t bytes_of_signs(size_t n) { return n / 8 + (n % 8 != 0); }
size_t stride_of_signs(size_t n) { return (bytes_of_signs(n) + 255) / 256 * 256; }

cudaError_t clear_first_bad(uint64_t *bad) { return cudaMemsetAsync(bad, 0xff, sizeof *bad, STREAM); }

// Waits for the kernels. *accepted = n, or the index of the first bad element, which they wrote to *bad.
cudaError_t accepted_of(const uint64_t *bad, size_t n, size_t *accepted) {
    uint64_t first = 0;
    cudaError_t error = cudaMemcpyAsync(&first, bad, sizeof first, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    *accepted = first < n ? (size_t)first : n;
    return error;
}

// The scratch buffer starts with the word `bad`. Signs start at this offset, in bytes.
constexpr size_t SIGNS = 256;

terse_optimizer_status vote(int device, uint8_t *wire, float *m, const float *g, size_t n,
                            const terse_lion_options *options, size_t *accepted) {
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS + stride_of_signs(n), &at);
    if (error == cudaSuccess) error = clear_first_bad((uint64_t *)at);
    if (error == cudaSuccess) error = lion_vote(at + SIGNS, m, g, n, options, (uint64_t *)at, STREAM);
    if (error == cudaSuccess && n)
        error = cudaMemcpyAsync(wire, at + SIGNS, bytes_of_signs(n), cudaMemcpyDeviceToHost, STREAM);
    return status_of(error == cudaSuccess ? accepted_of((const uint64_t *)at, n, accepted) : error);
}

// Runs launch(bad), the launch of a kernel that may refuse elements.
template <class Launch>
terse_optimizer_status refusing(int device, size_t n, size_t *accepted, Launch launch) {
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS, &at);
    if (error == cudaSuccess) error = clear_first_bad((uint64_t *)at);
    if (error == cudaSuccess) error = launch((uint64_t *)at);
    return status_of(error == cudaSuccess ? accepted_of((const uint64_t *)at, n, accepted) : error);
}

terse_optimizer_status mix(int device, float *c, float *m, const float *g, size_t n,
                           const terse_lion_options *options) {
    const cudaError_t error = cudaSetDevice(device);
    return status_of(error == cudaSuccess ? lion_mix(c, m, g, n, options, STREAM) : error);
}

terse_optimizer_status step(int device, float *theta, float *m, const float *g, size_t n,
                            const terse_lion_options *options, size_t *accepted) {
    return refusing(device, n, accepted,
                    [&](uint64_t *bad) { return lion_step(theta, m, g, n, options, bad, STREAM); });
}

// Copies planes of signs from the host into the scratch buffer, one after the other. The driver stages pageable memory,
// so the planes have been read when this returns.
cudaError_t put_signs(int device, const uint8_t *const *planes, size_t count, size_t n, uint8_t **at) {
    cudaError_t error = scratch_of(device, SIGNS + count * stride_of_signs(n), at);
    *at += SIGNS;
    for (size_t k = 0; k < count && error == cudaSuccess && n; k++)
        error = cudaMemcpyAsync(*at + k * stride_of_signs(n), planes[k], bytes_of_signs(n), cudaMemcpyHostToDevice,
                                STREAM);
    return error;
}

terse_optimizer_status apply_signs(int device, float *theta, const uint8_t *wire, size_t n, float keep, float scale) {
    uint8_t *at;
    cudaError_t error = put_signs(device, &wire, 1, n, &at);
    if (error == cudaSuccess) error = lion_apply_signs(theta, at, n, keep, scale, STREAM);
    return status_of(error);
}

terse_optimizer_status apply_ternary(int device, float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n,
                                     float keep, float scale) {
    const uint8_t *const planes[] = {plus, nonzero};
    uint8_t *at;
    cudaError_t error = put_signs(device, planes, 2, n, &at);
    if (error == cudaSuccess) error = lion_apply_ternary(theta, at, at + stride_of_signs(n), n, keep, scale, STREAM);
    return status_of(error);
}

terse_optimizer_status apply_tally(int device, float *theta, const uint8_t *const *planes, size_t ranks, size_t n,
                                   float keep, float scale) {
    if (ranks < 1 || ranks > TERSE_TALLY_MAX_RANKS) return TERSE_OPTIMIZER_BAD_RANKS;
    const int count = tally_planes(ranks);
    uint8_t *at;
    cudaError_t error = put_signs(device, planes, (size_t)count, n, &at);
    lion_planes on_device = {};
    for (int k = 0; k < count; k++) on_device.of[k] = at + (size_t)k * stride_of_signs(n);
    if (error == cudaSuccess) error = lion_apply_tally(theta, on_device, ranks, n, keep, scale, STREAM);
    return status_of(error);
}

terse_optimizer_status adamw(int device, float *theta, float *m, float *v, const float *g, size_t n,
                             const terse_adamw_options *options, size_t *accepted) {
    return refusing(device, n, accepted,
                    [&](uint64_t *bad) { return adamw_step(theta, m, v, g, n, options, bad, STREAM); });
}

terse_optimizer_status sgd(int device, float *theta, float *m, const float *g, size_t n,
                           const terse_sgd_options *options, size_t *accepted) {
    return refusing(device, n, accepted, [&](uint64_t *bad) { return sgd_step(theta, m, g, n, options, bad, STREAM); });
}

terse_optimizer_status accumulate(int device, float *m, float *v, const float *g, size_t n,
                                  const terse_moments_options *options, size_t *accepted) {
    return refusing(device, n, accepted,
                    [&](uint64_t *bad) { return moments_accumulate(m, v, g, n, options, bad, STREAM); });
}

// Adds the sums of all chunks, in order. launch(sums) launches the kernel that writes K sums for each chunk.
template <size_t K, class Launch>
terse_optimizer_status summed(int device, size_t n, double *totals, Launch launch) {
    std::vector<double> sums(K * divided_up(n, TERSE_REDUCTION_CHUNK));
    const size_t bytes = sums.size() * sizeof(double);
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS + bytes, &at);
    if (error == cudaSuccess) error = launch((double *)at);
    if (error == cudaSuccess && n) error = cudaMemcpyAsync(sums.data(), at, bytes, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    for (size_t k = 0; k < K; k++) totals[k] = 0;
    for (size_t i = 0; i < sums.size(); i++) totals[i % K] += sums[i];
    return status_of(error);
}

terse_optimizer_status squares(int device, const float *theta, const float *m, const float *v, size_t n,
                               const terse_adam_update *update, double *sums) {
    return summed<2>(device, n, sums,
                     [&](double *of_chunks) { return moments_squares(of_chunks, theta, m, v, n, update, STREAM); });
}

terse_optimizer_status apply(int device, float *theta, const float *m, const float *v, size_t n,
                             const terse_adam_update *update, float rate) {
    const cudaError_t error = cudaSetDevice(device);
    return status_of(error == cudaSuccess ? moments_apply(theta, m, v, n, update, rate, STREAM) : error);
}

terse_optimizer_status refresh(int device, float *fresh, const float *frozen, const float *m, const float *last,
                               size_t n, const terse_refresh_options *options, float *most) {
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS, &at);
    if (error == cudaSuccess) error = cudaMemsetAsync(at, 0, sizeof *most, STREAM);
    if (error == cudaSuccess) error = moments_refresh(fresh, frozen, m, last, n, options, (unsigned *)at, STREAM);
    if (error == cudaSuccess) error = cudaMemcpyAsync(most, at, sizeof *most, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    return status_of(error);
}

terse_optimizer_status add(int device, float *x, const float *p, const float *q, size_t m, size_t n, size_t r,
                           float keep, float scale) {
    const cudaError_t error = cudaSetDevice(device);
    return status_of(error == cudaSuccess ? low_rank_add(x, p, q, m, n, r, keep, scale, STREAM) : error);
}

terse_optimizer_status normalize(int device, float *q, float *columns, size_t n, size_t r, double threshold) {
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS + (r + 1) * sizeof(double), &at);
    if (error == cudaSuccess) error = low_rank_normalize(q, columns, n, r, threshold, (double *)at, STREAM);
    return status_of(error);
}

terse_optimizer_status sum_of_squares(int device, const float *x, size_t n, double *sum) {
    return summed<1>(device, n, sum, [&](double *of_chunks) { return sums_of_squares(of_chunks, x, n, STREAM); });
}

// The hash is sequential, so the host computes it from a copy.
terse_optimizer_status fingerprint(int device, const float *x, size_t n, uint64_t *print) {
    std::vector<float> on_host(n);
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess && n)
        error = cudaMemcpyAsync(on_host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    *print = terse_fingerprint(on_host.data(), n);
    return status_of(error);
}

const char *error(void) { return cudaGetErrorString(last_error); }

const terse_optimizers_cuda table = {
    TERSE_OPTIMIZERS_CUDA_ABI,
    TERSE_OPTIMIZERS_CUDA_OPTIONS,
    error,
    vote,
    mix,
    step,
    apply_signs,
    apply_ternary,
    apply_tally,
    adamw,
    sgd,
    accumulate,
    squares,
    apply,
    refresh,
    add,
    normalize,
    sum_of_squares,
    fingerprint,
};
}  // namespace

const terse_optimizers_cuda *terse_optimizers_cuda_table(void) { return &table; }
