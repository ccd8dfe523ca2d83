// Checks the kernels on a GPU against scalar C, at odd lengths and alignments; or times them beside a copy on the same
// device, in lines of JSON.
//   optimizers_cuda_check check|bench [Mi floats]      exit status 77: there is no driver or no device
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <vector>

#include "../adamw/adamw.cuh"
#include "../lion/lion.cuh"
#include "../low-rank/low_rank.cuh"
#include "../moments/moments.cuh"
#include "../reductions/reductions.cuh"
#include "../reductions/reductions.h"
#include "../sgd/sgd.cuh"
#include "terse/optimizers_cuda.h"

extern const terse_adamw terse_adamw_scalar;
extern const terse_sgd terse_sgd_scalar;
extern const terse_moments terse_moments_scalar;
extern const terse_low_rank terse_low_rank_scalar;

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

// AdamW, SGD and the kernels on Adam's moments.
void check_elementwise(const terse_optimizers_cuda &cuda, size_t n, size_t shift) {
    std::vector<float> theta = floats(n, 4), m = floats(n, 5), v = floats(n, 6);
    const std::vector<float> g = floats(n, 7);
    for (float &value : v) value = std::fabs(value);
    const device_floats device_theta(theta, shift), device_m(m, shift), device_v(v, shift), device_g(g, shift);
    const auto same = [&] { return device_theta.equal(theta) && device_m.equal(m) && device_v.equal(v); };
    size_t accepted = 0;

    const terse_adamw_options adamw = {0.01, 0.9, 0.999, 1e-8, 0.1, 3, 0.7f};
    terse_adamw_scalar.step(theta.data(), m.data(), v.data(), g.data(), n, &adamw);
    expect(cuda.adamw_step(0, device_theta.at, device_m.at, device_v.at, device_g.at, n, &adamw, &accepted) ==
                   TERSE_OPTIMIZER_OK &&
               accepted == n && same(),
           "adamw", n);

    for (const int nesterov : {0, 1}) {
        const terse_sgd_options sgd = {0.01, 0.9, nesterov ? 0 : 0.3, 0.1, 0.7f, nesterov, 0};
        terse_sgd_scalar.step(theta.data(), m.data(), g.data(), n, &sgd);
        expect(cuda.sgd_step(0, device_theta.at, device_m.at, device_g.at, n, &sgd, &accepted) == TERSE_OPTIMIZER_OK &&
                   accepted == n && same(),
               "sgd", n);
    }

    const terse_moments_options moments = {0.9, 0.999, 0.7f};
    terse_moments_scalar.accumulate(m.data(), v.data(), g.data(), n, &moments);
    expect(cuda.accumulate(0, device_m.at, device_v.at, device_g.at, n, &moments, &accepted) == TERSE_OPTIMIZER_OK &&
               accepted == n && same(),
           "accumulate", n);

    const terse_adam_update update = {1.7, 0.9, 1e-6, 0.1};
    double sums[2] = {0, 0}, expected[2] = {0, 0}, chunk[2];
    for (size_t at = 0; at < n; at += TERSE_REDUCTION_CHUNK) {
        terse_moments_scalar.squares(theta.data() + at, m.data() + at, v.data() + at,
                                     std::min<size_t>(n - at, TERSE_REDUCTION_CHUNK), &update, chunk);
        for (int k = 0; k < 2; k++) expected[k] += chunk[k];
    }
    expect(cuda.squares(0, device_theta.at, device_m.at, device_v.at, n, &update, sums) == TERSE_OPTIMIZER_OK &&
               sums[0] == expected[0] && sums[1] == expected[1],
           "squares", n);

    terse_moments_scalar.apply(theta.data(), m.data(), v.data(), n, &update, 0.01f, nullptr);
    expect(cuda.apply(0, device_theta.at, device_m.at, device_v.at, n, &update, 0.01f) == TERSE_OPTIMIZER_OK && same(),
           "apply", n);

    const std::vector<float> frozen(n, 0.25f);
    const device_floats device_frozen(frozen, shift);
    const terse_refresh_options refresh = {0.9, 0.999, 1e-6, 1};
    float most = 0;
    const float expected_most = terse_moments_scalar.refresh(v.data(), frozen.data(), m.data(), theta.data(), n,
                                                             &refresh, nullptr);
    expect(cuda.refresh(0, device_v.at, device_frozen.at, device_m.at, device_theta.at, n, &refresh, &most) ==
                   TERSE_OPTIMIZER_OK &&
               most == expected_most && same(),
           "refresh", n);
}

void check_low_rank(const terse_optimizers_cuda &cuda, size_t m, size_t n, size_t r) {
    std::vector<float> x = floats(m * n, 1), q = floats(n * r, 3), columns = floats(n * r, 4);
    const std::vector<float> p = floats(m * r, 2);
    const device_floats device_x(x, 0), device_p(p, 0), device_q(q, 0), device_columns(columns, 0);
    std::vector<float> packed(terse_low_rank_scalar.packed_floats(n, r));
    terse_low_rank_scalar.pack(packed.data(), q.data(), n, r);
    terse_low_rank_scalar.add(x.data(), p.data(), packed.data(), m, n, r, 0.9f, 0.3f);
    expect(cuda.low_rank_add(0, device_x.at, device_p.at, device_q.at, m, n, r, 0.9f, 0.3f) == TERSE_OPTIMIZER_OK &&
               device_x.equal(x),
           "low_rank_add", m * n);
    std::vector<double> norms(r);
    terse_low_rank_scalar.normalize(q.data(), columns.data(), n, r, 0.99, norms.data());
    expect(cuda.low_rank_normalize(0, device_q.at, device_columns.at, n, r, 0.99) == TERSE_OPTIMIZER_OK &&
               device_q.equal(q) && device_columns.equal(columns),
           "low_rank_normalize", n * r);
}

int check() {
    const terse_optimizers_cuda &cuda = *terse_optimizers_cuda_table();
    const terse_lion &lion = terse_lion_scalar;
    check_low_rank(cuda, 1, 1, 1), check_low_rank(cuda, 70, 130, 33), check_low_rank(cuda, 1000, 513, 64);
    for (const size_t n : {(size_t)1, (size_t)31, (size_t)512, (size_t)5003, ((size_t)1 << 20) - 3,
                           ((size_t)1 << 20) + 1, ((size_t)1 << 20) + 4099})
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
                    expect(
                        cuda.vote(0, wire.data(), device_m.at, device_g.at, n, &o, &accepted) == TERSE_OPTIMIZER_OK &&
                            accepted == n && wire == expected && device_m.equal(m),
                        "vote", n);
                }
                lion.step(theta.data(), m.data(), g.data(), n, &o);
                expect(
                    cuda.step(0, device_theta.at, device_m.at, device_g.at, n, &o, &accepted) == TERSE_OPTIMIZER_OK &&
                        accepted == n && device_theta.equal(theta) && device_m.equal(m),
                    "step", n);
                std::vector<uint8_t> planes[4];
                const uint8_t *list[4];
                for (unsigned k = 0; k < 4; k++) {
                    planes[k].resize(bytes);
                    for (size_t i = 0; i < bytes; i++) planes[k][i] = (uint8_t)((i * 2654435761u >> (5 + k)) ^ k);
                    list[k] = planes[k].data();
                }
                lion.apply_signs(theta.data(), list[0], n, 0.999f, -0.01f);
                expect(cuda.apply_signs(0, device_theta.at, list[0], n, 0.999f, -0.01f) == TERSE_OPTIMIZER_OK &&
                           device_theta.equal(theta),
                       "apply_signs", n);
                lion.apply_ternary(theta.data(), list[1], list[2], n, 0.999f, -0.01f);
                expect(
                    cuda.apply_ternary(0, device_theta.at, list[1], list[2], n, 0.999f, -0.01f) == TERSE_OPTIMIZER_OK &&
                        device_theta.equal(theta),
                    "apply_ternary", n);
                lion.apply_tally(theta.data(), list, 15, n, 0.999f, -0.01f);
                expect(cuda.apply_tally(0, device_theta.at, list, 15, n, 0.999f, -0.01f) == TERSE_OPTIMIZER_OK &&
                           device_theta.equal(theta),
                       "apply_tally", n);
                double sum = 0, expected_sum = 0;
                for (size_t at = 0; at < n; at += TERSE_REDUCTION_CHUNK)
                    expected_sum += terse_reductions_scalar.sum_of_squares(
                        theta.data() + at, std::min<size_t>(n - at, TERSE_REDUCTION_CHUNK));
                expect(cuda.sum_of_squares(0, device_theta.at, n, &sum) == TERSE_OPTIMIZER_OK && sum == expected_sum,
                       "sum_of_squares", n);
                uint64_t print = 0;
                expect(cuda.fingerprint(0, device_theta.at, n, &print) == TERSE_OPTIMIZER_OK &&
                           print == terse_fingerprint(theta.data(), n),
                       "fingerprint", n);
                check_elementwise(cuda, n, shift);
                g[n - 1] = NAN;
                const device_floats device_bad(g, shift);
                expect(cuda.vote(0, wire.data(), device_m.at, device_bad.at, n, &o, &accepted) == TERSE_OPTIMIZER_OK &&
                           accepted == n - 1,
                       "index of an element that is not finite", n);
            }
    std::printf("optimizers cuda %ld checks, %ld failed\n", checks, differences);
    return differences != 0;
}

size_t N = (size_t)256 << 20;

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
    if (failed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream")) return 1;
    float *theta, *m, *g, *v;
    uint8_t *planes;
    double *sums;
    uint64_t *bad;
    if (failed(cudaMalloc(&theta, 4 * N), "θ") || failed(cudaMalloc(&m, 4 * N), "m") ||
        failed(cudaMalloc(&g, 4 * N), "g") || failed(cudaMalloc(&v, 4 * N), "v") ||
        failed(cudaMemset(v, 0, 4 * N), "v") || failed(cudaMalloc(&planes, N / 2), "planes"))
        return 1;
    if (failed(cudaMalloc(&sums, N / TERSE_REDUCTION_CHUNK * 16), "sums") || failed(cudaMalloc(&bad, 8), "bad"))
        return 1;
    const std::vector<float> pattern = floats((size_t)1 << 20, 7);
    for (float *x : {theta, m, g})
        for (size_t at = 0; at < N; at += pattern.size())
            cudaMemcpy(x + at, pattern.data(), 4 * pattern.size(), cudaMemcpyHostToDevice);
    for (size_t at = 0; at < N / 2; at += 4 * pattern.size())
        cudaMemcpy(planes + at, pattern.data(), 4 * pattern.size(), cudaMemcpyHostToDevice);
    cudaMemset(bad, 0xff, 8);

    const auto say = [&](const char *what, const char *metric, double value, const char *unit) {
        std::printf("{\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"}\n", what, metric, value, unit);
        std::fflush(stdout);
    };
    const auto copy = [&] {
        return 8.0 * N /
               seconds(stream, [&] { return cudaMemcpyAsync(m, g, 4 * N, cudaMemcpyDeviceToDevice, stream); });
    };
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
    report("lion vote", 12.125, [&] { return lion_vote(planes, m, g, N, &o, bad, stream); });
    report("lion mix", 16, [&] { return lion_mix(theta, m, g, N, &o, stream); });
    report("lion step", 20, [&] { return lion_step(theta, m, g, N, &o, bad, stream); });
    report("apply signs", 8.125, [&] { return lion_apply_signs(theta, planes, N, 0.999f, -0.001f, stream); });
    report("apply signs with ties", 8.25,
           [&] { return lion_apply_ternary(theta, planes, planes + N / 8, N, 0.999f, -0.001f, stream); });
    report("apply counts of 8", 8.5, [&] { return lion_apply_tally(theta, tally, 8, N, 0.999f, -0.001f, stream); });
    const terse_adamw_options adamw = {0.001, 0.9, 0.999, 1e-8, 0.1, 3, 0.7f};
    const terse_sgd_options sgd = {0.001, 0.9, 0, 0.1, 0.7f, 0, 0};
    const terse_moments_options moments = {0.9, 0.999, 0.7f};
    const terse_adam_update update = {1, 1, 1e-6, 0.1};
    report("adamw step", 28, [&] { return adamw_step(theta, m, v, g, N, &adamw, bad, stream); });
    report("sgd step", 20, [&] { return sgd_step(theta, m, g, N, &sgd, bad, stream); });
    report("adam moments", 20, [&] { return moments_accumulate(m, v, g, N, &moments, bad, stream); });
    report("adam norms", 12, [&] { return moments_squares(sums, theta, m, v, N, &update, stream); });
    report("adam update", 16, [&] { return moments_apply(theta, m, v, N, &update, 0.001f, stream); });
    const terse_refresh_options refresh = {0.9, 0.999, 1e-6, 1};
    report("adam variance refresh", 20,
           [&] { return moments_refresh(v, theta, m, g, N, &refresh, (unsigned *)sums, stream); });
    const size_t side = (size_t)std::sqrt((double)N);
    report("low-rank update, rank 64", 8, [&] { return low_rank_add(theta, m, g, side, side, 64, 1, 1e-6f, stream); });
    report("sum of squares", 4, [&] { return sums_of_squares(sums, g, N, stream); });
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
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
        return std::printf("skipped: no CUDA device\n"), 77;
    if (count < 2 || std::strcmp(arguments[1], "bench")) return check();
    if (count > 2) N = (size_t)std::atol(arguments[2]) << 20;
    return bench();
}
