// Checks the kernels on a GPU, or measures them beside a copy on the same device, in lines of JSON:
//   codecs_cuda_check check [codec …]|long|golden|bench [Mi floats]
// Ends with status 77 where no driver or no device runs the kernels.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "terse/codecs_cuda.h"

namespace {
size_t N = (size_t)256 << 20;

bool failed(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return false;
    std::printf("%s: %s\n", what, cudaGetErrorString(error));
    return true;
}

// Seconds of the median of 21 calls, after 3 that warm up.
double seconds(cudaStream_t stream, const std::function<void()> &call) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    std::vector<float> all;
    for (int i = 0; i < 24; i++) {
        cudaEventRecord(begin, stream);
        call();
        cudaEventRecord(end, stream);
        cudaEventSynchronize(end);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, begin, end);
        if (i >= 3) all.push_back(milliseconds);
    }
    cudaEventDestroy(begin), cudaEventDestroy(end);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2] * 1e-3;
}

struct bench {
    cudaStream_t stream;
    double copied;  // bytes a second of a device copy, reads and writes both counted
    float *x, *error;
    uint8_t *wire, *workspace;
    uint64_t *bad;
    int failures;

    // `bytes`: read and written by the least that the work takes.
    void report(const char *what, double bytes, const std::function<terse_codec_status()> &call) {
        terse_codec_status status = TERSE_CODEC_OK;
        const double took = seconds(stream, [&] { status = call(); });
        if (status != TERSE_CODEC_OK || failed(cudaGetLastError(), what)) {
            std::fprintf(stderr, "%s: %s\n", what, terse_codec_sentence(status));
            failures++;
            return;
        }
        uint64_t first_bad = 0;
        cudaMemcpyAsync(&first_bad, bad, sizeof first_bad, cudaMemcpyDeviceToHost, stream);
        if (failed(cudaStreamSynchronize(stream), what) || first_bad != TERSE_CODEC_CUDA_GOOD) {
            std::fprintf(stderr, "%s: refused element %llu\n", what, (unsigned long long)first_bad);
            failures++;
            return;
        }
        say(what, "over_copy", bytes / took / copied, "ratio");
        say(what, "gb_per_second", bytes / took * 1e-9, "GB/s");
        say(what, "milliseconds", took * 1e3, "ms");
    }
    void say(const char *what, const char *metric, double value, const char *unit) const {
        std::printf("{\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"}\n", what, metric, value, unit);
        std::fflush(stdout);
    }
    double copy(float *other) {
        return 8.0 * N / seconds(stream, [&] { cudaMemcpyAsync(other, x, 4 * N, cudaMemcpyDeviceToDevice, stream); });
    }
};

void bench_codec(bench &b, const char *name, const char *how, void (*fill)(terse_codec_options &o)) {
    const terse_codec_cuda *codec;
    if (terse_codec_cuda_find(&codec, name) != TERSE_CODEC_OK) return;
    terse_codec_options o = TERSE_CODEC_OPTIONS;
    o.scale = 1e-9f;
    fill(o);
    size_t wire = 0, room = 0;
    terse_codec_cuda_wire_bytes(codec, N, &o, &wire);
    terse_codec_cuda_workspace_bytes(codec, N, &o, &room);
    if (failed(cudaMemsetAsync(b.error, 0, 4 * N, b.stream), "error")) return;
    if (failed(cudaMalloc(&b.workspace, room ? room : 8), "workspace")) return;
    const std::string title = std::string(name) + how;
    b.report((title + " encode").c_str(), (double)(4 * N + wire), [&] {
        return terse_codec_cuda_encode(codec, b.wire, wire, b.x, N, &o, b.workspace, room, b.bad, b.stream);
    });
    b.report((title + " encode with feedback").c_str(), (double)(12 * N + wire), [&] {
        return terse_codec_cuda_encode_with_feedback(codec, b.wire, wire, b.x, b.error, N, &o, b.workspace, room, b.bad,
                                                     b.stream);
    });
    const size_t sums = o.k && !o.block ? o.k : N;  // top-k adds to k of them
    b.report((title + " decode").c_str(), (double)(8 * sums + wire), [&] {
        return terse_codec_cuda_decode_add(codec, b.x, N, b.wire, wire, &o, b.workspace, room, b.bad, b.stream);
    });
    cudaFree(b.workspace);
}

int bench_all() {
    bench b = {};
    if (failed(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "stream")) return 1;
    float *other;
    if (failed(cudaMalloc(&b.x, 4 * N), "x") || failed(cudaMalloc(&b.error, 4 * N), "error") ||
        failed(cudaMalloc(&other, 4 * N), "copy") || failed(cudaMalloc(&b.bad, 8), "bad"))
        return 1;
    std::vector<float> pattern((size_t)1 << 20);  // a triangle wave: all sizes, both signs
    for (size_t i = 0; i < pattern.size(); i++) pattern[i] = ((float)(i * 7919 % 4001) - 2000.0f) * 1e-5f;
    for (size_t at = 0; at < N; at += pattern.size())
        cudaMemcpy(b.x + at, pattern.data(), 4 * pattern.size(), cudaMemcpyHostToDevice);
    b.copied = b.copy(other);
    b.say("copy, before", "gb_per_second", b.copied * 1e-9, "GB/s");
    b.wire = (uint8_t *)other;

    bench_codec(b, "sign", "", [](terse_codec_options &o) { o.zero = TERSE_ZERO_PLUS; });
    bench_codec(b, "ternary", "", [](terse_codec_options &) {});
    bench_codec(b, "bf16", "", [](terse_codec_options &) {});
    bench_codec(b, "f16", "", [](terse_codec_options &) {});
    bench_codec(b, "scaled-sign", "", [](terse_codec_options &o) { o.zero = TERSE_ZERO_PLUS; });
    bench_codec(b, "scaled-sign", ", blocks of 512",
                [](terse_codec_options &o) { o.zero = TERSE_ZERO_PLUS, o.block = 512; });
    bench_codec(b, "count", ", 1 bit of 4", [](terse_codec_options &o) { o.zero = TERSE_ZERO_PLUS, o.width = 4; });
    bench_codec(b, "l1", ", 4 bits", [](terse_codec_options &o) { o.bits = 4; });
    bench_codec(b, "linf", ", 4 bits", [](terse_codec_options &o) { o.bits = 4; });
    bench_codec(b, "qsgd", ", 4 bits, blocks of 512", [](terse_codec_options &o) { o.bits = 4, o.block = 512; });
    bench_codec(b, "int8", "", [](terse_codec_options &) {});
    bench_codec(b, "terngrad", "", [](terse_codec_options &) {});

    bench_codec(b, "top-k", ", 1 of 1000", [](terse_codec_options &o) { o.k = N / 1000; });
    bench_codec(b, "top-k", ", 1 of 100", [](terse_codec_options &o) { o.k = N / 100; });
    bench_codec(b, "dct-top-k", ", chunks of 64, k = 8", [](terse_codec_options &o) { o.block = 64, o.k = 8; });
    bench_codec(b, "dct-top-k", ", chunks of 1024, k = 32", [](terse_codec_options &o) { o.block = 1024, o.k = 32; });
    bench_codec(b, "dct-top-k", ", squares of 64, k = 32",
                [](terse_codec_options &o) { o.block = 64, o.k = 32, o.dimensions = 2; });

    const uint8_t *votes[8];
    for (size_t r = 0; r < 8; r++) votes[r] = (const uint8_t *)b.x + r * (N / 8);
    b.report("vote of 8", 9.0 * N / 8,
             [&] { return terse_vote_cuda_majority(b.wire, votes, 8, N, TERSE_ZERO_PLUS, b.stream); });
    b.report("vote of 8, ties to zero", 10.0 * N / 8,
             [&] { return terse_vote_cuda_majority_or_zero(b.wire, b.wire + N / 8, votes, 8, N, b.stream); });
    b.say("copy, after", "gb_per_second", b.copy(other) * 1e-9, "GB/s");
    return failed(cudaStreamSynchronize(b.stream), "the end") || b.failures;
}
}  // namespace

int main(int count, char **arguments) {
    const char *only = count > 1 ? arguments[1] : "";
    if (!dlopen("libcuda.so.1", RTLD_NOW)) return std::printf("skipped: no NVIDIA driver here (%s)\n", dlerror()), 77;
    if (terse_codecs_cuda_available() != TERSE_CODEC_OK)
        return std::printf("skipped: no device here runs the kernels (%s)\n", terse_codecs_cuda_error()), 77;
    if (!std::strcmp(only, "long")) return check_long();
    if (!std::strcmp(only, "golden")) return check_golden();
    if (std::strcmp(only, "bench")) return check_all(arguments + 2, count > 2 ? count - 2 : 0, true);
    if (count > 2) N = (size_t)std::atol(arguments[2]) << 20;
    return bench_all();
}
