// The calls of terse/codecs_cuda.h whose wires are in host memory: they copy wires and masks to a scratch buffer on the
// device and back.
#include <cstring>
#include <mutex>

#include "launch.cuh"
#include "scratch.cuh"
#include "shared/scale-groups/scale_groups.h"

namespace {
constexpr size_t LINE = 256;

size_t lines(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

std::mutex one_at_a_time;

// Memory of the host from which wires are copied several times as fast as from other memory. It grows and is never
// freed.
scratch pinned;

// Null where the system gives no such memory: a wire is then copied from where it is.
uint8_t *pinned_of(size_t bytes) {
    if (pinned.bytes >= bytes) return pinned.at;
    if (pinned.at) cudaFreeHost(pinned.at);
    pinned = {};
    if (cudaMallocHost((void **)&pinned.at, bytes) == cudaSuccess) pinned.bytes = bytes;
    else cudaGetLastError(), pinned.at = nullptr;
    return pinned.at;
}

// What a call has on the device besides the floats. `options` are the caller's, with the mask there.
struct on_device {
    uint64_t *bad;
    void *workspace;
    size_t room;
    uint8_t *wire;
    terse_codec_options options;
};

terse_codec_status put(on_device *there, const terse_codec_cuda *codec, int device, size_t n, size_t wire_bytes,
                       const terse_codec_options *options) {
    const terse_codec_status status = terse_codec_cuda_workspace_bytes(codec, n, options, &there->room);
    if (status != TERSE_CODEC_OK) return status;
    const size_t mask = options->hold ? n / 8 + (n % 8 != 0) : 0;
    uint8_t *at;
    cudaError_t error = scratch_of(device, LINE + lines(there->room) + lines(mask) + wire_bytes, &at);
    if (error != cudaSuccess) return terse_cuda_status(error);
    there->bad = (uint64_t *)at;
    there->workspace = at += LINE;
    uint8_t *const hold = at += lines(there->room);
    there->wire = at + lines(mask);
    there->options = *options;
    if (!mask) return TERSE_CODEC_OK;
    there->options.hold = hold;
    return terse_cuda_status(cudaMemcpyAsync(hold, options->hold, mask, cudaMemcpyHostToDevice, STREAM));
}

// Waits for the kernels, and reads what they say.
terse_codec_status wait(const on_device &there, uint64_t *bad) {
    cudaError_t error = cudaMemcpyAsync(bad, there.bad, sizeof *bad, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    return terse_cuda_status(error);
}
}  // namespace

terse_codec_status terse_codec_cuda_encode_to_host(const terse_codec_cuda *codec, int device, uint8_t *wire,
                                                   size_t wire_bytes, const float *x, float *error, size_t n,
                                                   const terse_codec_options *options, size_t *bad) {
    const std::lock_guard lock(one_at_a_time);
    on_device there;
    terse_codec_status status = put(&there, codec, device, n, wire_bytes, options);
    if (status != TERSE_CODEC_OK) return status;
    status = error ? terse_codec_cuda_encode_with_feedback(codec, there.wire, wire_bytes, x, error, n, &there.options,
                                                           there.workspace, there.room, there.bad, STREAM)
                   : terse_codec_cuda_encode(codec, there.wire, wire_bytes, x, n, &there.options, there.workspace,
                                             there.room, there.bad, STREAM);
    uint8_t *const staged = pinned_of(wire_bytes);
    if (status == TERSE_CODEC_OK && wire_bytes)
        status = terse_cuda_status(
            cudaMemcpyAsync(staged ? staged : wire, there.wire, wire_bytes, cudaMemcpyDeviceToHost, STREAM));
    uint64_t first = TERSE_CODEC_CUDA_GOOD;
    if (status == TERSE_CODEC_OK) status = wait(there, &first);
    if (status == TERSE_CODEC_OK && staged && wire_bytes) std::memcpy(wire, staged, wire_bytes);
    if (status != TERSE_CODEC_OK || first == TERSE_CODEC_CUDA_GOOD) return status;
    *bad = (size_t)first;
    return TERSE_CODEC_NOT_FINITE;
}

// A wire begins with its scales, so the whole of it is written, and stays on the device.
terse_codec_status terse_codec_cuda_scales_to_host(const terse_codec_cuda *codec, int device, float *scales,
                                                   size_t count, const float *x, size_t n,
                                                   const terse_codec_options *options, size_t *bad) {
    if (!codec->definition->scales) return TERSE_CODEC_NOT_TAKEN;
    if (count != terse_scale_group_count(n, options)) return TERSE_CODEC_BAD_LENGTH;
    terse_codec_options any = *options;
    if (codec->definition->takes & TERSE_TAKES_ZERO) any.zero = TERSE_ZERO_PLUS;
    const std::lock_guard lock(one_at_a_time);
    on_device there;
    size_t bytes;
    terse_codec_status status = terse_codec_cuda_wire_bytes(codec, n, &any, &bytes);
    if (status == TERSE_CODEC_OK) status = put(&there, codec, device, n, bytes, &any);
    if (status == TERSE_CODEC_OK)
        status = terse_codec_cuda_encode(codec, there.wire, bytes, x, n, &there.options, there.workspace, there.room,
                                         there.bad, STREAM);
    if (status == TERSE_CODEC_OK && count)
        status = terse_cuda_status(
            cudaMemcpyAsync(scales, there.wire, count * sizeof *scales, cudaMemcpyDeviceToHost, STREAM));
    uint64_t first = TERSE_CODEC_CUDA_GOOD;
    if (status == TERSE_CODEC_OK) status = wait(there, &first);
    if (status != TERSE_CODEC_OK || first == TERSE_CODEC_CUDA_GOOD) return status;
    *bad = (size_t)first;
    return TERSE_CODEC_NOT_FINITE;
}

terse_codec_status terse_codec_cuda_decode_from_host(const terse_codec_cuda *codec, int device, float *to, size_t n,
                                                     const uint8_t *wire, size_t wire_bytes,
                                                     const terse_codec_options *options, int adds) {
    const std::lock_guard lock(one_at_a_time);
    on_device there;
    terse_codec_status status = put(&there, codec, device, n, wire_bytes, options);
    uint8_t *const staged = pinned_of(wire_bytes);
    if (staged && wire_bytes) std::memcpy(staged, wire, wire_bytes);
    if (status == TERSE_CODEC_OK && wire_bytes)
        status = terse_cuda_status(
            cudaMemcpyAsync(there.wire, staged ? staged : wire, wire_bytes, cudaMemcpyHostToDevice, STREAM));
    if (status == TERSE_CODEC_OK && !adds && n)
        status = terse_cuda_status(cudaMemsetAsync(to, 0, n * sizeof *to, STREAM));
    if (status == TERSE_CODEC_OK)
        status = terse_codec_cuda_decode_add(codec, to, n, there.wire, wire_bytes, &there.options, there.workspace,
                                             there.room, there.bad, STREAM);
    uint64_t first = TERSE_CODEC_CUDA_GOOD;
    if (status == TERSE_CODEC_OK) status = wait(there, &first);
    return status == TERSE_CODEC_OK && first != TERSE_CODEC_CUDA_GOOD ? TERSE_CODEC_BAD_WIRE : status;
}

terse_codec_status terse_cuda_float_at(int device, const float *x, float *value) {
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess) error = cudaMemcpyAsync(value, x, sizeof *value, cudaMemcpyDeviceToHost, STREAM);
    if (error == cudaSuccess) error = cudaStreamSynchronize(STREAM);
    return terse_cuda_status(error);
}
