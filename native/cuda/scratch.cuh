// Memory of each device for what a call copies between the host and the device. For one host file of each library.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace {

constexpr int MAX_DEVICES = 64;
constexpr cudaStream_t STREAM = nullptr;  // the default stream, which libtorch uses too

// A buffer grows and is never freed. Work in the stream runs in order, so the next call may overwrite it.
struct scratch {
    uint8_t *at;
    size_t bytes;
} scratches[MAX_DEVICES];

// The device's buffer, of this many bytes or more; makes the device the current one.
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

}  // namespace
