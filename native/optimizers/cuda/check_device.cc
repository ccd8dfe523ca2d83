// Checks the kernels on a GPU against scalar C, at odd lengths and alignments; or times them and a copy on the same device, and prints
// JSON lines for docs/results.
//   optimizers_cuda_check check|bench      exit status 77: there is no driver or no device
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

#include "../lion/lion.cuh"
#include "../reductions/reductions.cuh"
#include "../reductions/reductions.h"
#include "terse/optimizers_cuda.h"

namespace {
long checks, differences;

void expect(bool good, const char *what, size_t n) {
    checks++;
    if (!good && differences++ < 20) std::printf("%s differs from scalar at n = %zu\n", what, n);
}

bool failed(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return false;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    return true;
}

std::vector<float> floats(size_t n, unsigned seed) {
    std::vector<float> x(n);
    uint64_t state = seed;
    for (float &value : x) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = state >> 60 ? (float)(int32_t)(state >> 32) * 0x1p-34f : 0.0f;
    }
    return x;
}

// A copy of x on the device, `shift` floats after a multiple of 256 bytes.
struct device_floats {
    float *block = nullptr, *at = nullptr;
    size_t n;
    device_floats(const std::vector<float> &x, size_t shift) : n(x.size()) {
        if (failed(cudaMalloc(&block, 4 * (n + shift) + 4), "memory")) std::exit(1);
        at = block + shift;
        cudaMemcpy(at, x.data(), 4 * n, cudaMemcpyHostToDevice);
    }
    ~device_floats() { cudaFree(block); }
    bool equal(const std::vector<float> &expected) const {
        std::vector<float> on_host(n);
        cudaMemcpy(on_host.data(), at, 4 * n, cudaMemcpyDeviceToHost);
        return !std::memcmp(on_host.data(), expected.data(), 4 * n);
    }
};

int check() {
    const terse_optimizers_cuda &cuda = *terse_optimizers_cuda_table();
    const terse_lion &lion = terse_lion_scalar;
    for (const size_t n : {(size_t)1, (size_t)31, (size_t)512, (size_t)5003, ((size_t)1 << 20) - 3, ((size_t)1 << 20) + 1, ((size_t)1 << 20) + 4099})
        for (const size_t shift : {0, 1})
            for (const terse_lion_zero zero : {TERSE_LION_MINUS, TERSE_LION_PLUS, TERSE_LION_HOLD}) {
                const terse_lion_options o = {0.01, 0.9, 0.99, 0.1, zero, 0.7f};
                std::vector<float> theta = floats(n, 1), m = floats(n, 2), g = floats(n, 3);
                const size_t bytes = n / 8 + (n % 8 != 0);
                std::vector<uint8_t> wire(bytes), expected(bytes);
                const device_floats device_theta(theta, shift), device_m(m, shift), device_g(g, shift);
                size_t accepted = 0;
                if (zero != TERSE_LION_HOLD) {
                    lion.vote(expected.data(), m.data(), g.data(), n, &o);
                    expect(cuda.vote(0, wire.data(), device_m.at, device_g.at, n, &o, &accepted) == TERSE_OPTIMIZER_OK && accepted == n && wire == expected && device_m.equal(m), "vote", n);
                }
                lion.step(theta.data(), m.data(), g.data(), n, &o);
                expect(cuda.step(0, device_theta.at, device_m.at, device_g.at, n, &o, &accepted) == TERSE_OPTIMIZER_OK && accepted == n && device_theta.equal(theta) && device_m.equal(m), "step", n);
                std::vector<uint8_t> planes[4];
                const uint8_t *list[4];
                for (unsigned k = 0; k < 4; k++) {
                    planes[k].resize(bytes);
                    for (size_t i = 0; i < bytes; i++) planes[k][i] = (uint8_t)((i * 2654435761u >> (5 + k)) ^ k);
                    list[k] = planes[k].data();
                }
                lion.apply_signs(theta.data(), list[0], n, 0.999f, -0.01f);
                expect(cuda.apply_signs(0, device_theta.at, list[0], n, 0.999f, -0.01f) == TERSE_OPTIMIZER_OK && device_theta.equal(theta), "apply_signs", n);
                lion.apply_ternary(theta.data(), list[1], list[2], n, 0.999f, -0.01f);
                expect(cuda.apply_ternary(0, device_theta.at, list[1], list[2], n, 0.999f, -0.01f) == TERSE_OPTIMIZER_OK && device_theta.equal(theta), "apply_ternary", n);
                lion.apply_tally(theta.data(), list, 15, n, 0.999f, -0.01f);
                expect(cuda.apply_tally(0, device_theta.at, list, 15, n, 0.999f, -0.01f) == TERSE_OPTIMIZER_OK && device_theta.equal(theta), "apply_tally", n);
                double sum = 0, expected_sum = 0;
                for (size_t at = 0; at < n; at += TERSE_REDUCTION_CHUNK) expected_sum += terse_reductions_scalar.sum_of_squares(theta.data() + at, std::min<size_t>(n - at, TERSE_REDUCTION_CHUNK));
                expect(cuda.sum_of_squares(0, device_theta.at, n, &sum) == TERSE_OPTIMIZER_OK && sum == expected_sum, "sum_of_squares", n);
                uint64_t print = 0;
                expect(cuda.fingerprint(0, device_theta.at, n, &print) == TERSE_OPTIMIZER_OK && print == terse_fingerprint(theta.data(), n), "fingerprint", n);
                g[n - 1] = NAN;
                const device_floats device_bad(g, shift);
                expect(cuda.vote(0, wire.data(), device_m.at, device_bad.at, n, &o, &accepted) == TERSE_OPTIMIZER_OK && accepted == n - 1, "index of an element that is not finite", n);
            }
    std::printf("optimizers cuda %ld checks, %ld failed\n", checks, differences);
    return differences != 0;
}

constexpr size_t N = (size_t)256 << 20;

// Median of 21 calls in seconds, after 3 calls to warm up.
double seconds(cudaStream_t stream, const std::function<cudaError_t()> &call) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    std::vector<float> all;
    for (int i = 0; i < 24; i++) {
        cudaEventRecord(begin, stream);
        if (failed(call(), "a kernel")) std::exit(1);
        cudaEventRecord(end, stream);
        if (failed(cudaEventSynchronize(end), "a kernel")) std::exit(1);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, begin, end);
        if (i >= 3) all.push_back(milliseconds);
    }
    cudaEventDestroy(begin), cudaEventDestroy(end);
    std::sort(all.begin(), all.end());
    return all[all.size() / 2] * 1e-3;
}

int bench() {
    cudaStream_t stream;
    cudaDeviceProp properties;
    if (failed(cudaGetDeviceProperties(&properties, 0), "device") || failed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream")) return 1;
    float *theta, *m, *g;
    uint8_t *planes;
    double *sums;
    uint64_t *bad;
    if (failed(cudaMalloc(&theta, 4 * N), "θ") || failed(cudaMalloc(&m, 4 * N), "m") || failed(cudaMalloc(&g, 4 * N), "g") || failed(cudaMalloc(&planes, N / 2), "planes")) return 1;
    if (failed(cudaMalloc(&sums, N / TERSE_REDUCTION_CHUNK * 8), "sums") || failed(cudaMalloc(&bad, 8), "bad")) return 1;
    const std::vector<float> pattern = floats((size_t)1 << 20, 7);
    for (float *x : {theta, m, g})
        for (size_t at = 0; at < N; at += pattern.size()) cudaMemcpy(x + at, pattern.data(), 4 * pattern.size(), cudaMemcpyHostToDevice);
    for (size_t at = 0; at < N / 2; at += 4 * pattern.size()) cudaMemcpy(planes + at, pattern.data(), 4 * pattern.size(), cudaMemcpyHostToDevice);
    cudaMemset(bad, 0xff, 8);

    char when[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(when, sizeof when, "%Y-%m-%dT%H:%MZ", std::gmtime(&now));
    const auto say = [&](const char *what, const char *metric, double value, const char *unit) {
        std::printf("{\"bench\":\"step\",\"setting\":\"cuda\",\"recorded\":\"%s\",\"machine\":\"%s, %d multiprocessors, 256 Mi floats\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"}\n", when,
                    properties.name, properties.multiProcessorCount, what, metric, value, unit);
        std::fflush(stdout);
    };
    const auto copy = [&] { return 8.0 * N / seconds(stream, [&] { return cudaMemcpyAsync(m, g, 4 * N, cudaMemcpyDeviceToDevice, stream); }); };
    const double copied = copy();
    say("copy, before", "gb_per_second", copied * 1e-9, "GB/s");
    // `bytes` per float: the least that must be read and written.
    const auto report = [&](const char *what, double bytes, const std::function<cudaError_t()> &call) {
        const double took = seconds(stream, call);
        say(what, "over_copy", bytes * N / took / copied, "ratio");
        say(what, "gb_per_second", bytes * N / took * 1e-9, "GB/s");
        say(what, "milliseconds", took * 1e3, "ms");
    };
    const terse_lion_options o = {0.001, 0.9, 0.99, 0.1, TERSE_LION_PLUS, 0.7f};
    lion_planes tally = {};
    for (size_t k = 0; k < 4; k++) tally.of[k] = planes + k * (N / 8);
    report("lion vote, cuda", 12.125, [&] { return lion_vote(planes, m, g, N, &o, bad, stream); });
    report("lion step, cuda", 20, [&] { return lion_step(theta, m, g, N, &o, bad, stream); });
    report("apply signs, cuda", 8.125, [&] { return lion_apply_signs(theta, planes, N, 0.999f, -0.001f, stream); });
    report("apply signs with ties, cuda", 8.25, [&] { return lion_apply_ternary(theta, planes, planes + N / 8, N, 0.999f, -0.001f, stream); });
    report("apply counts of 8, cuda", 8.5, [&] { return lion_apply_tally(theta, tally, 8, N, 0.999f, -0.001f, stream); });
    report("sum of squares, cuda", 4, [&] { return sums_of_squares(sums, g, N, stream); });
    uint64_t first = 0;
    cudaMemcpy(&first, bad, 8, cudaMemcpyDeviceToHost);
    say("copy, after", "gb_per_second", copy() * 1e-9, "GB/s");
    if (first != UINT64_MAX) return std::fprintf(stderr, "element %llu was not finite\n", (unsigned long long)first), 1;
    return failed(cudaStreamSynchronize(stream), "the end");
}
}  // namespace

int main(int count, char **arguments) {
    if (!dlopen("libcuda.so.1", RTLD_NOW)) return std::printf("skipped: no NVIDIA driver (%s)\n", dlerror()), 77;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return std::printf("skipped: no CUDA device\n"), 77;
    return count > 1 && !std::strcmp(arguments[1], "bench") ? bench() : check();
}
