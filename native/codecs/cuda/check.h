// What the checks of kernels share. They run twice: in the emulator, and on a GPU. The kernels of a codec are checked
// in the ways of its configurations.c, and by its check.cu where it has one.
#ifndef TERSE_CODECS_CUDA_CHECK_H
#define TERSE_CODECS_CUDA_CHECK_H
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

#include "../check/check.h"
#include "terse/codecs_cuda.h"

// 0 where all is well. Of all codecs, or of those that are named. Everything is every length with every kind of
// numbers: for a GPU. The emulator, which takes a minute for that, has every pair of them (configuration and length,
// configuration and kind, length and kind), and for each configuration one of the lengths beyond 64 Ki.
int check_all(char **names, int count, bool everything);

// The golden vectors on standard input; ../check/vectors.h has the lines.
int check_golden();

// Lengths about 1 Mi, odd ones: for a GPU, the emulator would take minutes for each.
int check_long();

// A codec's kernels against its scalar C: used in one way, at one length, with one of three kinds of numbers; and calls
// that are refused.
void check_length(const terse_codec_cuda *codec, const configuration &c, size_t length, int kind);
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

// Device memory of just `bytes`, from `shift` bytes behind a multiple of 256 on, with margins that no kernel may write.
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
