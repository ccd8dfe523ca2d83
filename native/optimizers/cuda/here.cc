// The table of terse/optimizers_cuda.h: signs are carried between the host and a room on the device, where the kernels find them.
#include "terse/optimizers_cuda.h"

#include <vector>

#include "../lion/lion.cuh"
#include "../reductions/reductions.cuh"

namespace {
constexpr int MOST_DEVICES = 64;
constexpr cudaStream_t STREAM = nullptr;  // the default one, where libtorch works too

cudaError_t last_error = cudaSuccess;

terse_optimizer_status status_of(cudaError_t error) {
    if (error == cudaSuccess) return TERSE_OPTIMIZER_OK;
    cudaGetLastError();  // it was reported here: the next call of anybody does not find it again
    last_error = error;
    return TERSE_OPTIMIZER_NOT_HERE;
}

// Grows and stays: what is put there is used in the order of the stream, so the next call may overwrite it.
struct room { uint8_t *at; size_t bytes; } rooms[MOST_DEVICES];

cudaError_t room_of(int device, size_t bytes, uint8_t **at) {
    if (device < 0 || device >= MOST_DEVICES) return cudaErrorInvalidDevice;
    cudaError_t error = cudaSetDevice(device);
    room &r = rooms[device];
    if (error == cudaSuccess && r.bytes < bytes) {
        error = cudaFree(r.at);  // waits for whoever uses it
        r = {};
        if (error == cudaSuccess) error = cudaMalloc(&r.at, bytes);
        if (error == cudaSuccess) r.bytes = bytes;
    }
    *at = r.at;
    return error;
}

size_t bytes_of_signs(size_t n) { return n / 8 + (n % 8 != 0); }
size_t stride_of_signs(size_t n) { return (bytes_of_signs(n) + 255) / 256 * 256; }

cudaError_t nothing_is_bad(uint64_t *bad) { return cudaMemsetAsync(bad, 0xff, sizeof *bad, STREAM); }

// n, or the index that the kernels before have written. Waits.
cudaError_t accepted_of(const uint64_t *bad, size_t n, size_t *accepted) {
    uint64_t first = 0;
    cudaError_t error = cudaMemcpyAsync(&first, bad, sizeof first, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    *accepted = first < n ? (size_t)first : n;
    return error;
}

// The room begins with a word for `bad`; signs follow.
constexpr size_t SIGNS = 256;

terse_optimizer_status vote(int device, uint8_t *wire, float *m, const float *g, size_t n, const terse_lion_options *options, size_t *accepted) {
    uint8_t *at;
    cudaError_t error = room_of(device, SIGNS + stride_of_signs(n), &at);
    if (error == cudaSuccess) error = nothing_is_bad((uint64_t *)at);
    if (error == cudaSuccess) error = lion_vote(at + SIGNS, m, g, n, options, (uint64_t *)at, STREAM);
    if (error == cudaSuccess && n) error = cudaMemcpyAsync(wire, at + SIGNS, bytes_of_signs(n), cudaMemcpyDeviceToHost, STREAM);
    return status_of(error == cudaSuccess ? accepted_of((const uint64_t *)at, n, accepted) : error);
}

terse_optimizer_status step(int device, float *theta, float *m, const float *g, size_t n, const terse_lion_options *options, size_t *accepted) {
    uint8_t *at;
    cudaError_t error = room_of(device, SIGNS, &at);
    if (error == cudaSuccess) error = nothing_is_bad((uint64_t *)at);
    if (error == cudaSuccess) error = lion_step(theta, m, g, n, options, (uint64_t *)at, STREAM);
    return status_of(error == cudaSuccess ? accepted_of((const uint64_t *)at, n, accepted) : error);
}

// The signs of the host, side by side in the room. Pageable memory goes through the driver's own, so they are read when this returns.
cudaError_t put_signs(int device, const uint8_t *const *planes, size_t count, size_t n, uint8_t **at) {
    cudaError_t error = room_of(device, SIGNS + count * stride_of_signs(n), at);
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
    lion_planes there = {};
    for (int k = 0; k < count; k++) there.of[k] = at + (size_t)k * stride_of_signs(n);
    if (error == cudaSuccess) error = lion_apply_tally(theta, there, ranks, n, keep, scale, STREAM);
    return status_of(error);
}

terse_optimizer_status sum_of_squares(int device, const float *x, size_t n, double *sum) {
    std::vector<double> sums(divided_up(n, TERSE_REDUCTION_CHUNK));
    const size_t bytes = sums.size() * sizeof(double);
    uint8_t *at;
    cudaError_t error = room_of(device, SIGNS + bytes, &at);
    if (error == cudaSuccess) error = sums_of_squares((double *)at, x, n, STREAM);
    if (error == cudaSuccess && n) error = cudaMemcpyAsync(sums.data(), at, bytes, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    *sum = 0;
    for (const double one : sums) *sum += one;
    return status_of(error);
}

// Each of its rounds waits for the one before, so the host does it.
terse_optimizer_status fingerprint(int device, const float *x, size_t n, uint64_t *print) {
    std::vector<float> here(n);
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess && n) error = cudaMemcpyAsync(here.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    *print = terse_fingerprint(here.data(), n);
    return status_of(error);
}

const char *error(void) { return cudaGetErrorString(last_error); }

const terse_optimizers_cuda table = {
    TERSE_OPTIMIZERS_CUDA_ABI, sizeof(terse_lion_options), error, vote, step, apply_signs, apply_ternary, apply_tally, sum_of_squares, fingerprint,
};
}  // namespace

const terse_optimizers_cuda *terse_optimizers_cuda_here(void) { return &table; }
