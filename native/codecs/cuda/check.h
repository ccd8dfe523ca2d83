// What the checks of kernels share. They run in the emulator and on a GPU. A codec's kernels are checked in the
// configurations of its configurations.c, and by its check.cu where it has one.
#ifndef TERSE_CODECS_CUDA_CHECK_H
#define TERSE_CODECS_CUDA_CHECK_H
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

#include "../check/check.h"
#include "terse/codecs_cuda.h"

// Checks the named codecs, or all of them; returns 0 if nothing differs. `everything`, for a GPU: every length with
// every kind of numbers in each configuration. The emulator would take a minute for that. Without `everything`, every
// pair is checked (configuration and length, configuration and kind, length and kind), and each configuration has at
// most one of the lengths beyond 64 Ki.
int check_all(char **names, int count, bool everything);

// Compares with golden vectors on standard input; ../check/vectors.h describes the lines.
int check_golden();

// Checks odd lengths near 1 Mi, for a GPU; the emulator would take minutes for each.
int check_long();

// Compares a codec's kernels with its scalar C in one configuration, at one length, with one of three kinds of numbers.
void check_length(const terse_codec_cuda *codec, const configuration &c, size_t length, int kind);
// Checks that calls which every codec must refuse are refused.
void check_refusals(const terse_codec_cuda *codec, const configuration &c);

inline std::vector<uint8_t> any_bytes(size_t bytes) {
    std::vector<uint8_t> all(bytes);
    random_bytes(all.data(), bytes);
    return all;
}

constexpr size_t MARGIN = 48;

inline void must(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::printf("CUDA: %s\n", cudaGetErrorString(error));
    std::exit(1);
}

// Device memory of `bytes` that begins `shift` bytes after a multiple of 256, between margins that no kernel may write.
struct device_bytes {
    uint8_t *room, *at;
    size_t bytes, all;
    device_bytes(size_t bytes, size_t shift) : bytes(bytes), all(MARGIN + shift + bytes + MARGIN) {
        // The room begins at a multiple of 256 on a GPU and of 16 on a CPU, and MARGIN is a multiple of 16.
        must(cudaMalloc(&room, all));
        at = room + MARGIN + shift;
        must(cudaMemset(room, SENTINEL, all));
    }
    ~device_bytes() { cudaFree(room); }
    device_bytes(const device_bytes &) = delete;
    void put(const void *from) {
        if (bytes) must(cudaMemcpy(at, from, bytes, cudaMemcpyHostToDevice));
    }
    std::vector<uint8_t> get() const {
        std::vector<uint8_t> copy(bytes);
        if (bytes) must(cudaMemcpy(copy.data(), at, bytes, cudaMemcpyDeviceToHost));
        return copy;
    }
    bool margins_are_whole() const {
        std::vector<uint8_t> copy(all);
        must(cudaMemcpy(copy.data(), room, all, cudaMemcpyDeviceToHost));
        const size_t begin = (size_t)(at - room);
        for (size_t i = 0; i < all; i++)
            if ((i < begin || i >= begin + bytes) && copy[i] != SENTINEL) return false;
        return true;
    }
};

inline uint64_t bad_on_device(const device_bytes &bad) {
    uint64_t value;
    std::memcpy(&value, bad.get().data(), 8);
    return value;
}

#endif
