// The host side of terse/optimizers_cuda.h: copies signs between host memory and a scratch buffer on the device, and launches the kernels.
#include "terse/optimizers_cuda.h"

#include <vector>

#include "../lion/lion.cuh"
#include "../reductions/reductions.cuh"

namespace {
constexpr int MAX_DEVICES = 64;
constexpr cudaStream_t STREAM = nullptr;  // the default stream, which libtorch uses too

cudaError_t last_error = cudaSuccess;

terse_optimizer_status status_of(cudaError_t error) {
    if (error == cudaSuccess) return TERSE_OPTIMIZER_OK;
    cudaGetLastError();  // clears CUDA's own record, so that no later call reports this error again
    last_error = error;
    return TERSE_OPTIMIZER_UNAVAILABLE;
}

// One scratch buffer per device. It grows and is never freed. Work in the stream runs in order, so the next call may overwrite it.
struct scratch { uint8_t *at; size_t bytes; } scratches[MAX_DEVICES];

cudaError_t scratch_of(int device, size_t bytes, uint8_t **at) {
    if (device < 0 || device >= MAX_DEVICES) return cudaErrorInvalidDevice;
    cudaError_t error = cudaSetDevice(device);
    scratch &s = scratches[device];
    if (error == cudaSuccess && s.bytes < bytes) {
        error = cudaFree(s.at);  // waits until no kernel uses it
        s = {};
        if (error == cudaSuccess) error = cudaMalloc(&s.at, bytes);
        if (error == cudaSuccess) s.bytes = bytes;
    }
    *at = s.at;
    return error;
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

terse_optimizer_status vote(int device, uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options, size_t *accepted) {
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS + stride_of_signs(n), &at);
    if (error == cudaSuccess) error = clear_first_bad((uint64_t *)at);
    if (error == cudaSuccess) error = lion_vote(at + SIGNS, m, g, n, options, (uint64_t *)at, STREAM);
    if (error == cudaSuccess && n) error = cudaMemcpyAsync(wire, at + SIGNS, bytes_of_signs(n), cudaMemcpyDeviceToHost, STREAM);
    return status_of(error == cudaSuccess ? accepted_of((const uint64_t *)at, n, accepted) : error);
}

terse_optimizer_status step(int device, float *theta, float *m, const float *g, size_t n, const terse_lion_options *options, size_t *accepted) {
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS, &at);
    if (error == cudaSuccess) error = clear_first_bad((uint64_t *)at);
    if (error == cudaSuccess) error = lion_step(theta, m, g, n, options, (uint64_t *)at, STREAM);
    return status_of(error == cudaSuccess ? accepted_of((const uint64_t *)at, n, accepted) : error);
}

// Copies planes of signs from the host into the scratch buffer, one after the other. The driver stages pageable memory, so the planes have
// been read when this returns.
cudaError_t put_signs(int device, const uint8_t *const *planes, size_t count, size_t n, uint8_t **at) {
    cudaError_t error = scratch_of(device, SIGNS + count * stride_of_signs(n), at);
    *at += SIGNS;
    for (size_t k = 0; k < count && error == cudaSuccess && n; k++)
        error = cudaMemcpyAsync(*at + k * stride_of_signs(n), planes[k], bytes_of_signs(n), cudaMemcpyHostToDevice, STREAM);
    return error;
}

terse_optimizer_status apply_signs(int device, float *theta, const uint8_t *wire, size_t n, float keep, float scale) {
    uint8_t *at;
    cudaError_t error = put_signs(device, &wire, 1, n, &at);
    if (error == cudaSuccess) error = lion_apply_signs(theta, at, n, keep, scale, STREAM);
    return status_of(error);
}

terse_optimizer_status apply_ternary(int device, float *theta, const uint8_t *plus, const uint8_t *nonzero, size_t n, float keep, float scale) {
    const uint8_t *const planes[] = {plus, nonzero};
    uint8_t *at;
    cudaError_t error = put_signs(device, planes, 2, n, &at);
    if (error == cudaSuccess) error = lion_apply_ternary(theta, at, at + stride_of_signs(n), n, keep, scale, STREAM);
    return status_of(error);
}

terse_optimizer_status apply_tally(int device, float *theta, const uint8_t *const *planes, size_t ranks, size_t n, float keep, float scale) {
    if (ranks < 1 || ranks > TERSE_TALLY_MAX_RANKS) return TERSE_OPTIMIZER_BAD_RANKS;
    const int count = tally_planes(ranks);
    uint8_t *at;
    cudaError_t error = put_signs(device, planes, (size_t)count, n, &at);
    lion_planes on_device = {};
    for (int k = 0; k < count; k++) on_device.of[k] = at + (size_t)k * stride_of_signs(n);
    if (error == cudaSuccess) error = lion_apply_tally(theta, on_device, ranks, n, keep, scale, STREAM);
    return status_of(error);
}

terse_optimizer_status sum_of_squares(int device, const float *x, size_t n, double *sum) {
    std::vector<double> sums(divided_up(n, TERSE_REDUCTION_CHUNK));
    const size_t bytes = sums.size() * sizeof(double);
    uint8_t *at;
    cudaError_t error = scratch_of(device, SIGNS + bytes, &at);
    if (error == cudaSuccess) error = sums_of_squares((double *)at, x, n, STREAM);
    if (error == cudaSuccess && n) error = cudaMemcpyAsync(sums.data(), at, bytes, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    *sum = 0;
    for (const double one : sums) *sum += one;
    return status_of(error);
}

// The hash is sequential, so the host computes it from a copy.
terse_optimizer_status fingerprint(int device, const float *x, size_t n, uint64_t *print) {
    std::vector<float> on_host(n);
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess && n) error = cudaMemcpyAsync(on_host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    *print = terse_fingerprint(on_host.data(), n);
    return status_of(error);
}

const char *error(void) { return cudaGetErrorString(last_error); }

const terse_optimizers_cuda table = {
    TERSE_OPTIMIZERS_CUDA_ABI, sizeof(terse_lion_options), error, vote, step, apply_signs, apply_ternary, apply_tally, sum_of_squares, fingerprint,
};
}  // namespace

const terse_optimizers_cuda *terse_optimizers_cuda_table(void) { return &table; }
