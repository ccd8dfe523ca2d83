// Every kernel against the scalar codec: same bytes, same sums, same first bad element, nothing outside the arrays touched, whatever the
// length and the alignment. Built twice: against the emulator, and for a GPU. Exit status 1 if anything differs, 77 without a GPU.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

#include "../check_vectors.h"
#include "check.h"
#include "shared/reductions/reductions.h"
#include "shared/scale-groups/scale_groups.h"
#include "codecs/top-k/top_k.cuh"
#include "vote/vote.h"

namespace {
constexpr size_t MARGIN = 48;
constexpr uint8_t SENTINEL = 0xA5;

long checks, bad_checks;

uint64_t random_state = 0x9E3779B97F4A7C15u;
uint64_t random_word() {  // splitmix64
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void expect(bool good, const char *what, size_t n, const char *how) {
    checks++;
    if (good || bad_checks++ >= 20) return;
    std::printf("%s differs from scalar at n = %zu: %s\n", what, n, how);
}

void must(cudaError_t error) {
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

uint64_t bad_on_device(const device_bytes &bad) {
    uint64_t value;
    std::memcpy(&value, bad.get().data(), 8);
    return value;
}

// Bit for bit, but that a NaN is a NaN.
bool same_floats(const device_bytes &there, const std::vector<float> &expected) {
    const std::vector<uint8_t> bytes = there.get();
    for (size_t i = 0; i < expected.size(); i++) {
        float value;
        std::memcpy(&value, bytes.data() + 4 * i, 4);
        if (std::memcmp(&value, &expected[i], 4) && !(std::isnan(value) && std::isnan(expected[i]))) return false;
    }
    return true;
}

// Any finite float, with zeros of both signs, denormals and the largest ones more often than chance has them.
float any_float() {
    const uint64_t r = random_word();
    switch (r % 8) {
        case 0: return 0.0f;
        case 1: return -0.0f;
        case 2: return (r & 8 ? 1 : -1) * 0x1p-149f;
        case 3: return (r & 8 ? 1 : -1) * 0x1.fffffep127f;
    }
    const uint32_t bits = (uint32_t)(r >> 32);
    float x;
    std::memcpy(&x, &bits, 4);
    return std::isfinite(x) ? x : 1.0f;
}

// Numbers as a gradient has them.
float small_float() { return (float)((double)(int64_t)random_word() * 0x1p-63 * (double)(random_word() % 1000) * 1e-5); }

// Runs of zeros, so that whole scale groups are zero.
float sparse_float() {
    static unsigned run;
    if (run == 0 && random_word() % 4 == 0) run = 40;
    return run && run-- ? 0.0f : small_float();
}

std::vector<uint8_t> any_bytes(size_t bytes) {
    std::vector<uint8_t> all(bytes);
    for (uint8_t &byte : all) byte = (uint8_t)random_word();
    return all;
}

// One way to use a codec. What depends on n is filled in by `fill`.
struct configuration {
    const char *codec;
    const char *name;
    void (*fill)(terse_codec_options &o, size_t n);
    float (*number)();  // numbers that the codec can write; any finite ones where null
};

void hold_some(terse_codec_options &o, size_t n) {
    static std::vector<uint8_t> mask;  // on the host; check_codec gives the kernels their own
    mask = any_bytes(n / 8 + 1);
    o.hold = mask.data();
}

float bf16_float() {
    float x;
    do x = any_float();
    while (std::fabs(x) > 0x1.fep127f);
    return x;
}

// All sizes of f16: its largest numbers, its denormals, and everything between.
float f16_float() { return (float)((double)(int64_t)random_word() * 0x1p-63 * std::pow(2.0, (double)(random_word() % 46) - 30.0) * 0.999); }

// Segments of every kind: empty ones, one of one element, odd ends.
void by_segments(terse_codec_options &o, size_t n) {
    static std::vector<size_t> ends;
    ends = {0, n / 3, n / 3, n ? n - 1 : 0, n, n};
    if (ends[3] < ends[2]) ends[3] = ends[2];
    o.segments = ends.data(), o.segment_count = ends.size();
}

// As much as a unit may be, less than what is written, and none at all.
void by_units(terse_codec_options &o, size_t n) {
    static std::vector<float> units;
    o.unscaled = 1;
    units.resize(terse_scale_group_count(n, &o));
    for (size_t r = 0; r < units.size(); r++) units[r] = r % 5 == 3 ? 0.0f : r % 7 == 5 ? 0x1p111f : 0.003f * (float)(r % 3 + 1);
    units.reserve(1);  // an address even where there is nothing: null would be none
    o.units = units.data(), o.unit_count = units.size();
}

// Sums of a few are at the end of fp32, or beyond it.
float large_float() { return (float)((double)(int64_t)random_word() * 0x1p-63 * (random_word() % 16 ? 0x1p123 : 0x1p127)); }

float huge_float() { return (float)((double)(int64_t)random_word() * 0x1p-63 * 0x1.fffffep127); }

float whole_float() { return (float)((int)(random_word() % 15) - 7); }

void block_of_7(terse_codec_options &o, size_t) { o.block = 7; }
void block_of_512(terse_codec_options &o, size_t) { o.block = 512; }

const configuration configurations[] = {
    {"sign", "zeros plus", [](terse_codec_options &o, size_t) { o.zero = TERSE_ZERO_PLUS; }, nullptr},
    {"sign", "zeros minus, some elements held", [](terse_codec_options &o, size_t n) { o.zero = TERSE_ZERO_MINUS, hold_some(o, n); }, nullptr},
    {"ternary", "any numbers", [](terse_codec_options &, size_t) {}, nullptr},
    {"bf16", "numbers that fit", [](terse_codec_options &, size_t) {}, bf16_float},
    {"bf16", "any numbers", [](terse_codec_options &, size_t) {}, nullptr},
    {"f16", "numbers that fit", [](terse_codec_options &, size_t) {}, f16_float},
    {"f16", "any numbers", [](terse_codec_options &, size_t) {}, nullptr},
    {"scaled-sign", "one scale", [](terse_codec_options &o, size_t) { o.zero = TERSE_ZERO_PLUS; }, nullptr},
    {"scaled-sign", "one scale, some elements held", [](terse_codec_options &o, size_t n) { o.zero = TERSE_ZERO_PLUS, hold_some(o, n); }, nullptr},
    {"scaled-sign", "blocks of 7", [](terse_codec_options &o, size_t n) { o.zero = TERSE_ZERO_MINUS, block_of_7(o, n); }, sparse_float},
    {"scaled-sign", "blocks of 512, some elements held", [](terse_codec_options &o, size_t n) { o.zero = TERSE_ZERO_PLUS, block_of_512(o, n), hold_some(o, n); }, nullptr},
    {"scaled-sign", "segments", [](terse_codec_options &o, size_t n) { o.zero = TERSE_ZERO_PLUS, by_segments(o, n); }, nullptr},
    {"count", "one bit in fields of 2", [](terse_codec_options &o, size_t) { o.zero = TERSE_ZERO_MINUS, o.width = 2, o.ranks = 3; }, nullptr},
    {"count", "4 bits in fields of 8", [](terse_codec_options &o, size_t) { o.zero = TERSE_ZERO_PLUS, o.bits = 4, o.width = 8, o.ranks = 17; }, whole_float},
    {"count", "8 bits in fields of 16", [](terse_codec_options &o, size_t) { o.zero = TERSE_ZERO_PLUS, o.bits = 8, o.width = 16, o.ranks = 200; }, whole_float},
    {"count", "2 bits in fields of 4, numbers that do not fit", [](terse_codec_options &o, size_t) { o.zero = TERSE_ZERO_PLUS, o.bits = 2, o.width = 4; }, whole_float},
    {"l1", "4 bits", [](terse_codec_options &o, size_t) { o.bits = 4; }, small_float},
    {"l1", "3 bits, blocks of 7, any numbers", [](terse_codec_options &o, size_t n) { o.bits = 3, block_of_7(o, n); }, nullptr},
    {"l1", "8 bits in fields of 16, segments", [](terse_codec_options &o, size_t n) { o.bits = 8, o.width = 16, by_segments(o, n); }, small_float},
    {"l1", "2 bits in fields of 8, unscaled, blocks of 512", [](terse_codec_options &o, size_t n) { o.bits = 2, o.width = 8, o.ranks = 85, o.unscaled = 1, block_of_512(o, n); }, sparse_float},
    {"l1", "42 levels a side for 3 ranks", [](terse_codec_options &o, size_t n) { o.bits = 7, o.side = 42, o.width = 8, o.ranks = 3, o.unscaled = 1, by_segments(o, n); }, small_float},
    {"l1", "11 levels a side", [](terse_codec_options &o, size_t) { o.bits = 5, o.side = 11; }, small_float},
    {"l1", "5 bits by a unit", [](terse_codec_options &o, size_t n) { o.bits = 5, by_units(o, n); }, small_float},
    {"l1", "8 bits in fields of 16 by units of blocks of 77", [](terse_codec_options &o, size_t n) { o.bits = 8, o.width = 16, o.ranks = 200, o.block = 77, by_units(o, n); }, small_float},
    {"l1", "2 bits in fields of 8 by units of segments, any numbers", [](terse_codec_options &o, size_t n) { o.bits = 2, o.width = 8, o.ranks = 80, by_segments(o, n), by_units(o, n); }, nullptr},
    {"linf", "4 bits by a unit, any numbers", [](terse_codec_options &o, size_t n) { o.bits = 4, by_units(o, n); }, nullptr},
    {"linf", "7 bits by units of blocks of 512", [](terse_codec_options &o, size_t n) { o.bits = 7, o.width = 16, o.ranks = 500, block_of_512(o, n), by_units(o, n); }, small_float},
    {"linf", "3 bits without zero by units of segments", [](terse_codec_options &o, size_t n) { o.bits = 3, o.levels = TERSE_LEVELS_WITHOUT_ZERO, by_segments(o, n), by_units(o, n); }, sparse_float},
    {"linf", "4 bits", [](terse_codec_options &o, size_t) { o.bits = 4; }, nullptr},
    {"linf", "5 bits, logarithmic, blocks of 7", [](terse_codec_options &o, size_t n) { o.bits = 5, o.levels = TERSE_LEVELS_LOGARITHMIC, block_of_7(o, n); }, sparse_float},
    {"linf", "8 bits, logarithmic, any numbers", [](terse_codec_options &o, size_t) { o.bits = 8, o.levels = TERSE_LEVELS_LOGARITHMIC; }, nullptr},
    {"linf", "2 bits, without zero, segments", [](terse_codec_options &o, size_t n) { o.bits = 2, o.levels = TERSE_LEVELS_WITHOUT_ZERO, by_segments(o, n); }, small_float},
    {"linf", "6 bits in fields of 16, unscaled", [](terse_codec_options &o, size_t) { o.bits = 6, o.width = 16, o.ranks = 9, o.unscaled = 1; }, small_float},
    {"qsgd", "4 bits, blocks of 512", [](terse_codec_options &o, size_t n) { o.bits = 4, block_of_512(o, n); }, small_float},
    {"qsgd", "8 bits, any numbers", [](terse_codec_options &o, size_t) { o.bits = 8; }, nullptr},
    {"qsgd", "7 bits, segments", [](terse_codec_options &o, size_t n) { o.bits = 7, by_segments(o, n); }, sparse_float},
    {"int8", "one scale", [](terse_codec_options &, size_t) {}, nullptr},
    {"int8", "blocks of 512", block_of_512, small_float},
    {"int8", "blocks of 7", block_of_7, sparse_float},
    {"int8", "segments", by_segments, nullptr},
    {"terngrad", "one scale", [](terse_codec_options &, size_t) {}, nullptr},
    {"terngrad", "clipped, blocks of 512", [](terse_codec_options &o, size_t n) { o.clip = 2.5f, block_of_512(o, n); }, small_float},
    {"terngrad", "clipped, segments", [](terse_codec_options &o, size_t n) { o.clip = 1.0f, by_segments(o, n); }, small_float},
    {"terngrad", "clipped, one scale", [](terse_codec_options &o, size_t) { o.clip = 0.5f; }, nullptr},
    {"terngrad", "blocks of 7", block_of_7, sparse_float},
    {"top-k", "one of a hundred, any numbers", [](terse_codec_options &o, size_t n) { o.k = n / 100 + 1; }, nullptr},
    {"top-k", "half, zeros in between", [](terse_codec_options &o, size_t n) { o.k = n / 2 + 1; }, sparse_float},
    {"top-k", "a third, many equal", [](terse_codec_options &o, size_t n) { o.k = n / 3 + 1; }, whole_float},
    {"top-k", "one", [](terse_codec_options &o, size_t) { o.k = 1; }, small_float},
    {"dct-top-k", "chunks of 64", [](terse_codec_options &o, size_t) { o.block = 64, o.k = 8; }, small_float},
    {"dct-top-k", "chunks of 100, any numbers", [](terse_codec_options &o, size_t) { o.block = 100, o.k = 7; }, nullptr},
    {"dct-top-k", "all of chunks of 7", [](terse_codec_options &o, size_t) { o.block = 7, o.k = 7; }, whole_float},
    {"dct-top-k", "chunks of 1024", [](terse_codec_options &o, size_t) { o.block = 1024, o.k = 32; }, small_float},
    {"dct-top-k", "chunks of 4096, half of them", [](terse_codec_options &o, size_t) { o.block = 4096, o.k = 2048; }, sparse_float},
    {"dct-top-k", "chunks of 675, large numbers", [](terse_codec_options &o, size_t) { o.block = 675, o.k = 200; }, large_float},
    {"dct-top-k", "pairs that fit or just do not", [](terse_codec_options &o, size_t) { o.block = 2, o.k = 2; }, huge_float},
    {"dct-top-k", "chunks of 4, many coefficients equal", [](terse_codec_options &o, size_t) { o.block = 4, o.k = 2; }, whole_float},
    {"dct-top-k", "squares of 6", [](terse_codec_options &o, size_t) { o.block = 6, o.k = 5, o.dimensions = 2; }, small_float},
    {"dct-top-k", "squares of 28, large numbers", [](terse_codec_options &o, size_t) { o.block = 28, o.k = 50, o.dimensions = 2; }, large_float},
    {"dct-top-k", "squares of 64", [](terse_codec_options &o, size_t) { o.block = 64, o.k = 32, o.dimensions = 2; }, small_float},
    {"dct-top-k", "squares of 66, any numbers", [](terse_codec_options &o, size_t) { o.block = 66, o.k = 40, o.dimensions = 2; }, nullptr},
    {"dct-top-k", "squares of 128, half of them", [](terse_codec_options &o, size_t) { o.block = 128, o.k = 8192, o.dimensions = 2; }, sparse_float},
    {"top-k", "all", [](terse_codec_options &o, size_t n) { o.k = n; }, small_float},
};

const size_t lengths[] = {0,  1,  2,  3,  7,  8,   9,   15,  16,  17,  31,  32,  33,  47,  63,  64,   65,   70,   127,  128,  129,  255,  256,  257,  511,
                          512, 513, 1021, 1023, 1024, 1025, 1536, 2047, 2048, 2049, 4095, 4096, 4097, 5003, 8191, 8192, 8193, 9216, 16500};
// Beyond the 64 Ki of one partial sum.
const size_t long_lengths[] = {65536, 65537, 200003};

void check_length(const terse_codec_cuda *codec, const configuration &c, size_t length, int kind) {
    size_t n = length;
    const terse_codec *scalar = codec->definition;
    // Half of the calls have arrays as they are allocated, half begin anywhere.
    const bool aligned = random_word() % 2 == 0;
    const auto shift = [&](size_t unit) { return aligned ? 0 : unit * (random_word() % (32 / unit)); };
    terse_codec_options o = TERSE_CODEC_OPTIONS;
    c.fill(o, n);
    if (o.dimensions == 2) n -= n % (o.block * o.block);  // whole squares only
    o.seed = random_word(), o.step = random_word(), o.index = random_word() / 64 * 64;
    o.scale = kind == 1 ? 1.0f : 0.3f;
    const auto expecting = [&](bool good, const char *how) {
        char what[160];
        std::snprintf(what, sizeof what, "%s cuda (%s)", scalar->name, c.name);
        expect(good, what, n, how);
    };

    if (n == 0 && scalar->takes & TERSE_TAKES_K && !(scalar->takes & TERSE_TAKES_BLOCK)) return;  // nothing to choose from
    std::vector<float> x(n);
    for (float &value : x) value = kind == 0 ? (random_word() % 2 ? 0.0f : -0.0f) : c.number ? c.number() : kind == 1 ? any_float() : small_float();
    size_t bytes = 0, room = 0;
    expecting(terse_codec_wire_bytes(scalar, n, &o, &bytes) == TERSE_CODEC_OK, "bytes of the wire");
    expecting(terse_codec_cuda_workspace_bytes(codec, n, &o, &room) == TERSE_CODEC_OK && room % 8 == 0, "bytes of the workspace");

    device_bytes x_there(n * 4, shift(4)), wire_there(bytes, shift(1)), sum_there(n * 4, shift(4)), workspace(room, 0), bad(8, 0);
    device_bytes hold_there(o.hold ? n / 8 + (n % 8 != 0) : 0, shift(1));
    terse_codec_options there = o;
    if (o.hold) hold_there.put(o.hold), there.hold = hold_there.at;
    const auto encode = [&] {
        return terse_codec_cuda_encode(codec, wire_there.at, bytes, (const float *)x_there.at, n, &there, workspace.at, room, (uint64_t *)bad.at, nullptr);
    };

    std::vector<uint8_t> wire(bytes);
    size_t first_bad = n;
    const terse_codec_status encoded = terse_codec_encode(scalar, wire.data(), bytes, x.data(), n, &o, &first_bad);
    x_there.put(x.data());
    expecting(encode() == TERSE_CODEC_OK, "encode's status");
    if (encoded == TERSE_CODEC_OK) {
        expecting(bad_on_device(bad) == TERSE_CODEC_CUDA_GOOD, "good numbers are good");
        expecting(wire_there.get() == wire, "wire bytes");
    } else {
        expecting(bad_on_device(bad) == first_bad, "index of the first element that does not fit");
    }

    // Error feedback, of errors that now and then lead beyond what is finite or fits; then once more with an x that is not finite.
    for (int spoilt = 0; spoilt < (n ? 2 : 1) && (n + (size_t)kind) % 2 == 0; spoilt++) {
        std::vector<float> error(n), given = x;
        for (float &value : error) value = kind == 1 && c.number != whole_float ? any_float() : c.number ? c.number() : small_float();
        if (spoilt) given[random_word() % n] = NAN;
        device_bytes given_there(n * 4, shift(4)), error_there(n * 4, shift(4));
        given_there.put(given.data()), error_there.put(error.data());
        std::vector<uint8_t> expected_wire(bytes);
        const std::vector<float> before = error;
        const terse_codec_status expected = terse_codec_encode_with_feedback(scalar, expected_wire.data(), bytes, given.data(), error.data(), n, &o, &first_bad);
        if (expected != TERSE_CODEC_OK) {  // what C leaves then depends on the pieces that it works in
            const auto first_infinite = [&](const auto &value) {
                size_t i = 0;
                while (i < n && std::isfinite(value(i))) i++;
                return i;
            };
            size_t infinite = first_infinite([&](size_t i) { return given[i]; });
            if (infinite == n) infinite = first_infinite([&](size_t i) { return before[i] + given[i]; });
            for (size_t i = 0; i < n; i++) error[i] = infinite < n ? before[i] : (before[i] + given[i]) - given[i];
            if (infinite < n) first_bad = infinite;
        }
        expecting(terse_codec_cuda_encode_with_feedback(codec, wire_there.at, bytes, (const float *)given_there.at, (float *)error_there.at, n, &there, workspace.at, room, (uint64_t *)bad.at, nullptr) == TERSE_CODEC_OK,
                  "encode_with_feedback's status");
        expecting(bad_on_device(bad) == (expected == TERSE_CODEC_OK ? TERSE_CODEC_CUDA_GOOD : first_bad), "what is refused with feedback");
        expecting(expected != TERSE_CODEC_OK || wire_there.get() == expected_wire, "wire bytes with feedback");
        expecting(same_floats(error_there, error), spoilt ? "an error of refused floats" : "the error that stays");
        expecting(given_there.margins_are_whole() && error_there.margins_are_whole(), "bytes outside the arrays of feedback");
    }

    const std::vector<uint8_t> written = wire;
    for (int any = encoded != TERSE_CODEC_OK; any < 3; any++) {
        if (any == 1) wire = any_bytes(bytes);  // any byte may arrive
        if (any == 2) {
            if (encoded != TERSE_CODEC_OK || !bytes) break;
            wire = written, wire[random_word() % bytes] ^= (uint8_t)(1 << random_word() % 8);
        }
        wire_there.put(wire.data());
        std::vector<float> sum(n);
        for (float &value : sum) value = any_float() * 0.25f;
        sum_there.put(sum.data());
        const terse_codec_status status = terse_codec_decode_add(scalar, sum.data(), n, wire.data(), bytes, &o);
        expecting(terse_codec_cuda_decode_add(codec, (float *)sum_there.at, n, wire_there.at, bytes, &there, workspace.at, room, (uint64_t *)bad.at, nullptr) == TERSE_CODEC_OK, "decode_add's status");
        expecting((bad_on_device(bad) == TERSE_CODEC_CUDA_GOOD) == (status == TERSE_CODEC_OK), "which wires are bad");
        const std::vector<uint8_t> sums = sum_there.get();
        expecting(!n || !std::memcmp(sums.data(), sum.data(), sums.size()), any ? "decoded sums of any bytes" : "decoded sums");
    }

    for (int trial = 0; n && trial < (n > 60000 ? 1 : 2); trial++) {  // one bad element, sometimes another behind it
        static const float worst[] = {NAN, -INFINITY, INFINITY, -NAN};
        const size_t first = random_word() % n, second = first + random_word() % (n - first);
        std::vector<float> spoilt = x;
        spoilt[second] = worst[trial + 1], spoilt[first] = worst[trial];
        const terse_codec_status refused = terse_codec_encode(scalar, wire.data(), bytes, spoilt.data(), n, &o, &first_bad);
        x_there.put(spoilt.data());
        expecting(encode() == TERSE_CODEC_OK && refused != TERSE_CODEC_OK && bad_on_device(bad) == first_bad, "index of the first bad element");
    }
    expecting(x_there.margins_are_whole() && wire_there.margins_are_whole() && sum_there.margins_are_whole() && workspace.margins_are_whole() && bad.margins_are_whole(), "bytes outside the arrays");
}

void check_refusals(const terse_codec_cuda *codec, const configuration &c) {
    constexpr size_t N = 128;
    const char *name = codec->definition->name;
    terse_codec_options good = TERSE_CODEC_OPTIONS, o;
    c.fill(good, N);
    good.hold = nullptr;
    if (good.dimensions == 2) good.block = 8, good.k = 5;  // of which N is a whole number
    size_t bytes = 0, room = 0;
    terse_codec_cuda_workspace_bytes(codec, N, &good, &room);
    terse_codec_cuda_wire_bytes(codec, N, &good, &bytes);
    device_bytes x(N * 4, 0), wire(bytes, 0), workspace(room + 8, 0), bad(8, 0);
    const auto refuses = [&](terse_codec_status status, const char *what, const terse_codec_options &options, size_t wire_bytes, const void *at, size_t have) {
        expect(terse_codec_cuda_encode(codec, wire.at, wire_bytes, (const float *)at, N, &options, workspace.at, have, (uint64_t *)bad.at, nullptr) == status, name, N, what);
    };
    refuses(TERSE_CODEC_BAD_LENGTH, "a wire too long", good, bytes + 1, x.at, room);
    if (room) refuses(TERSE_CODEC_BAD_LENGTH, "a workspace too small", good, bytes, x.at, room - 1);
    refuses(TERSE_CODEC_OVERLAP, "a wire inside the floats", good, bytes, wire.at, room);
    refuses(TERSE_CODEC_MISALIGNED, "floats at half a float", good, bytes, x.at + 2, room);
    o = good, o.size--;
    refuses(TERSE_CODEC_BAD_ABI, "options of another version", o, bytes, x.at, room);
    if (codec->definition->takes & TERSE_TAKES_ZERO) o = good, o.zero = TERSE_ZERO_UNSET, refuses(TERSE_CODEC_BAD_ZERO, "a zero that is not set", o, bytes, x.at, room);
    if (codec->definition->takes & TERSE_TAKES_RANDOM) o = good, o.index = 32, refuses(TERSE_CODEC_BAD_INDEX, "an index of half a word", o, bytes, x.at, room);
    device_bytes error(N * 4, 0);
    const auto feeds = [&](terse_codec_status status, const char *what, const void *from, const void *to, size_t have) {
        expect(terse_codec_cuda_encode_with_feedback(codec, wire.at, bytes, (const float *)from, (float *)to, N, &good, workspace.at, have, (uint64_t *)bad.at, nullptr) == status, name, N, what);
    };
    feeds(TERSE_CODEC_BAD_LENGTH, "a workspace too small for feedback", x.at, error.at, room - 1);
    feeds(TERSE_CODEC_OVERLAP, "an error inside the floats", x.at, x.at + 4, room);
    feeds(TERSE_CODEC_OVERLAP, "floats inside the workspace", workspace.at, error.at, room);
    feeds(TERSE_CODEC_MISALIGNED, "floats of feedback at half a float", x.at + 2, error.at, room);
    feeds(TERSE_CODEC_MISALIGNED, "an error at half a float", x.at, error.at + 2, room);
    o = good, o.scale = INFINITY;
    expect(terse_codec_cuda_decode_add(codec, (float *)x.at, N, wire.at, bytes, &o, workspace.at, room, (uint64_t *)bad.at, nullptr) == TERSE_CODEC_BAD_SCALE, name, N, "an infinite scale");
    expect(wire.margins_are_whole() && wire.get() == std::vector<uint8_t>(bytes, SENTINEL), name, N, "a refused call writes nothing");
}

long golden_codec(const terse_golden_codec *golden) {
    const terse_codec_cuda *codec;
    if (terse_codec_cuda_find(&codec, golden->name) != TERSE_CODEC_OK) return 0;
    const size_t n = golden->n;
    size_t bytes = 0, room = 0;
    terse_codec_cuda_workspace_bytes(codec, n, &golden->options, &room);
    if (terse_codec_cuda_wire_bytes(codec, n, &golden->options, &bytes) != TERSE_CODEC_OK || bytes != golden->wire_bytes) {
        terse_golden_differs("cuda", "the number of wire bytes");
        return 1;
    }
    terse_codec_options o = golden->options;
    const std::vector<uint8_t> wire(golden->wire, golden->wire + bytes);
    device_bytes x(4 * n, 0), to(bytes, 0), sum(4 * n, 0), hold(o.hold ? n / 8 + (n % 8 != 0) : 0, 0), workspace(room, 0), bad(8, 0);
    if (o.hold) hold.put(o.hold), o.hold = hold.at;
    x.put(golden->x), sum.put(golden->before);
    const terse_codec_status encoded = terse_codec_cuda_encode(codec, to.at, bytes, (const float *)x.at, n, &o, workspace.at, room, (uint64_t *)bad.at, nullptr);
    if (encoded != TERSE_CODEC_OK || bad_on_device(bad) != TERSE_CODEC_CUDA_GOOD || to.get() != wire) terse_golden_differs("cuda", "the wire");
    to.put(golden->read);
    const terse_codec_status decoded = terse_codec_cuda_decode_add(codec, (float *)sum.at, n, to.at, bytes, &o, workspace.at, room, (uint64_t *)bad.at, nullptr);
    const std::vector<uint8_t> sums = sum.get();
    if (decoded != TERSE_CODEC_OK || bad_on_device(bad) != TERSE_CODEC_CUDA_GOOD || (n && std::memcmp(sums.data(), golden->sum, 4 * n))) terse_golden_differs("cuda", "the sum");
    return 1;
}

long golden_vote(const terse_golden_vote *golden) {
    const size_t n = golden->n, ranks = golden->ranks, bytes = n / 8 + (n % 8 != 0), row = bytes ? bytes : 1;
    device_bytes votes(ranks * row, 0), out((2 + golden->planes) * row, 0);
    std::vector<uint8_t> all(ranks * row);
    std::vector<const uint8_t *> there(ranks);
    for (size_t r = 0; r < ranks; r++)
        if (golden->votes[r]) std::memcpy(all.data() + r * row, golden->votes[r], bytes), there[r] = votes.at + r * row;
    votes.put(all.data());
    const auto differs = [&](size_t at, const uint8_t *from) { return bytes && std::memcmp(out.get().data() + at * row, from, bytes); };
    for (int plus = 0; plus < 2; plus++) {
        const terse_codec_status status = terse_vote_cuda_majority(out.at, there.data(), ranks, n, plus ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS, nullptr);
        if (status != TERSE_CODEC_OK || differs(0, golden->majority[plus])) terse_golden_differs("cuda", "the majority");
    }
    if (terse_vote_cuda_majority_or_zero(out.at, out.at + row, there.data(), ranks, n, nullptr) != TERSE_CODEC_OK || differs(0, golden->plus) || differs(1, golden->nonzero)) terse_golden_differs("cuda", "the majority or zero");
    std::vector<uint8_t *> planes(golden->planes);
    for (size_t k = 0; k < planes.size(); k++) planes[k] = out.at + (2 + k) * row;
    bool same = terse_vote_cuda_tally(planes.data(), there.data(), ranks, n, nullptr) == TERSE_CODEC_OK;
    for (size_t k = 0; k < planes.size(); k++) same = same && !differs(2 + k, golden->plane[k]);
    if (!same) terse_golden_differs("cuda", "the tally");
    return 1;
}

// Sums in fp64, to the last bit; enough elements that a scale group has many chunks, and chunks many rounds.
void check_reductions() {
    const struct {
        size_t n, block;
        bool segments;
    } all[] = {{1, 0, false}, {70001, 0, false}, {((size_t)130 << 16) + 777, 0, false}, {700003, 70000, false}, {200000, 512, false}, {300001, 0, true}};
    for (const auto &c : all) {
        terse_codec_options o = TERSE_CODEC_OPTIONS;
        o.block = c.block;
        if (c.segments) by_segments(o, c.n);
        const size_t count = terse_scale_group_count(c.n, &o);
        std::vector<float> x(c.n);
        for (float &value : x) value = small_float();
        device_bytes x_there(4 * c.n, 4), magnitudes(8 * count, 0), squares(8 * count, 0), most(4 * count, 0), workspace(workspace_for_check(c.n, &o), 0);
        x_there.put(x.data());
        expect(reduce_for_check((double *)magnitudes.at, (double *)squares.at, (float *)most.at, (const float *)x_there.at, c.n, &o, workspace.at) == TERSE_CODEC_OK, "reductions cuda", c.n, "status");
        std::vector<uint8_t> expected[3] = {std::vector<uint8_t>(8 * count), std::vector<uint8_t>(8 * count), std::vector<uint8_t>(4 * count)};
        for (size_t r = 0; r < count; r++) {
            const size_t begin = terse_scale_group_begin(r, c.n, &o), length = terse_scale_group_begin(r + 1, c.n, &o) - begin;
            const double sums[2] = {terse_reductions_scalar.sum_of_magnitudes(x.data() + begin, length), terse_reductions_scalar.sum_of_squares(x.data() + begin, length)};
            const float largest = terse_reductions_scalar.largest(x.data() + begin, length);
            std::memcpy(&expected[0][8 * r], &sums[0], 8), std::memcpy(&expected[1][8 * r], &sums[1], 8), std::memcpy(&expected[2][4 * r], &largest, 4);
        }
        expect(magnitudes.get() == expected[0], "reductions cuda", c.n, "sums of magnitudes");
        expect(squares.get() == expected[1], "reductions cuda", c.n, "sums of squares");
        expect(most.get() == expected[2], "reductions cuda", c.n, "largest magnitudes");
        expect(workspace.margins_are_whole(), "reductions cuda", c.n, "bytes outside the workspace");
    }
}

// What a selection can stumble over: many equal ones, borders of tiles, a sample that misleads.
void check_selection(const terse_codec_cuda *codec) {
    static const struct {
        const char *name;
        float (*at)(size_t i, bool sampled);
    } vectors[] = {
        {"all equal", [](size_t, bool) { return -1.5f; }},
        {"all zero", [](size_t i, bool) { return i % 3 ? 0.0f : -0.0f; }},
        {"denormals", [](size_t i, bool) { return (float)(i * 7919 % 1009) * -0x1p-149f; }},
        {"the same seven sizes", [](size_t i, bool) { return (float)((int)(i * 7919 % 13) - 6); }},
        {"one large one", [](size_t i, bool) { return i == 65537 ? 0x1.fffffep127f : 0x1p-126f; }},
        {"neighbouring numbers", [](size_t i, bool) { return 1.0f + (float)(i * 7919 % 4099) * 0x1p-23f; }},
        {"a sample of small ones", [](size_t i, bool sampled) { return sampled ? 1.0f : 2.0f + (float)(i % 5); }},
        {"a sample of large ones", [](size_t i, bool sampled) { return sampled ? 8.0f : 1.0f + (float)(i % 1000) * 0x1p-20f; }},
    };
    for (const auto &v : vectors)
        for (const size_t n : {(size_t)1 << 16, (size_t)(1 << 16) + 4097, (size_t)150001}) {
            const size_t samples = top_k_samples(n), stride = n / samples;
            std::vector<float> x(n);
            for (size_t i = 0; i < n; i++) x[i] = v.at(i, i / stride < samples && top_k_sampled(stride, 1, i / stride) == i);
            for (const size_t k : {(size_t)1, samples + 7, n / 3, n}) {
                terse_codec_options o = TERSE_CODEC_OPTIONS;
                o.k = k;
                size_t bytes = 0, room = 0;
                terse_codec_cuda_wire_bytes(codec, n, &o, &bytes), terse_codec_cuda_workspace_bytes(codec, n, &o, &room);
                device_bytes x_there(n * 4, 4), wire_there(bytes, random_word() % 16), workspace(room, 0), bad(8, 0);
                x_there.put(x.data());
                std::vector<uint8_t> wire(bytes);
                expect(terse_codec_encode(codec->definition, wire.data(), bytes, x.data(), n, &o, nullptr) == TERSE_CODEC_OK, v.name, n, "top-k in C");
                const terse_codec_status status = terse_codec_cuda_encode(codec, wire_there.at, bytes, (const float *)x_there.at, n, &o, workspace.at, room, (uint64_t *)bad.at, nullptr);
                expect(status == TERSE_CODEC_OK && bad_on_device(bad) == TERSE_CODEC_CUDA_GOOD && wire_there.get() == wire, v.name, n, "top-k's bytes");
                expect(wire_there.margins_are_whole() && workspace.margins_are_whole(), v.name, n, "bytes outside top-k's arrays");
            }
        }
}

// Tile t has t + 1; those from `whole` on have published only their own count.
void check_look_back() {
    for (const size_t tile : {0, 1, 31, 32, 33, 64, 65, 100, 200})
        for (const size_t whole : {0, 1, 2, 31, 32, 33, 63, 64, 65, 99, 199}) {
            if (whole > tile) continue;
            std::vector<unsigned long long> states(tile + 1);
            unsigned long long all = 0;
            for (size_t t = 0; t < tile; t++) all += t + 1, states[t] = t <= whole ? TILE_PREFIX | all : TILE_AGGREGATE | (t + 1);
            device_bytes states_there(8 * states.size(), 0), before(8, 0);
            states_there.put(states.data());
            expect(look_back_for_check((unsigned long long *)before.at, (unsigned long long *)states_there.at, tile, tile + 1) == TERSE_CODEC_OK, "top-k cuda", tile, "a look back");
            expect(bad_on_device(before) == all, "top-k cuda", tile, "how many are before a tile");
            states[tile] = TILE_PREFIX | (all + tile + 1);
            expect(!std::memcmp(states_there.get().data(), states.data(), 8 * states.size()), "top-k cuda", tile, "what a tile tells");
        }
}

void check_vote() {
    static const size_t all_ranks[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 127, 128, 200, 1023, 1024};
    for (const size_t ranks : all_ranks)
        for (const size_t n : lengths) {
            if (ranks > 3 && n % 3 == 0) continue;
            if (ranks > 9 && n > 5003) continue;
            if (ranks > 200 && n > 600) continue;
            const size_t bytes = n / 8 + (n % 8 != 0);
            const bool aligned = random_word() % 2 == 0;
            std::vector<std::vector<uint8_t>> votes(ranks);
            // One allocation; the distance between votes is a multiple of 16, or arbitrary.
            const size_t stride = (bytes + 15) / 16 * 16 + (aligned ? 0 : 1 + random_word() % 3);
            device_bytes there(stride * ranks, aligned ? 0 : random_word() % 16);
            std::vector<const uint8_t *> host(ranks), device(ranks);
            std::vector<uint8_t> room(stride * ranks);
            for (size_t r = 0; r < ranks; r++) {
                votes[r] = any_bytes(bytes ? bytes : 1);  // an address even where there is nothing: null would be absent
                // The random votes of many ranks nearly tie, so few elements reach the ends of the count. Hence some ranks agree.
                if (r && random_word() % 3 == 0) votes[r] = votes[r - 1];
                if (bytes) std::memcpy(room.data() + r * stride, votes[r].data(), bytes);
                host[r] = votes[r].data(), device[r] = there.at + r * stride;
                if (ranks > 2 && random_word() % 8 == 0 && r) host[r] = device[r] = nullptr;  // absent
            }
            there.put(room.data());
            for (int kind = 0; kind < 5; kind++) {
                const size_t shift = aligned ? 0 : random_word() % 16;
                device_bytes out[VOTE_PLANES] = {{bytes, shift}, {bytes, shift}, {bytes, shift}, {bytes, shift}, {bytes, shift}, {bytes, shift},
                                                 {bytes, shift}, {bytes, shift}, {bytes, shift}, {bytes, shift}, {bytes, shift}};
                std::vector<uint8_t> expected[VOTE_PLANES];
                uint8_t *to[VOTE_PLANES], *expected_to[VOTE_PLANES];
                for (size_t k = 0; k < VOTE_PLANES; k++) expected[k].assign(bytes, SENTINEL), expected_to[k] = expected[k].data(), to[k] = out[k].at;
                terse_codec_status status, expected_status;
                const char *what;
                if (kind < 2) {
                    what = kind ? "majority, ties plus" : "majority, ties minus";
                    const terse_zero tie = kind ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS;
                    expected_status = terse_vote_scalar.majority(expected_to[0], host.data(), ranks, n, tie);
                    status = terse_vote_cuda_majority(to[0], device.data(), ranks, n, tie, nullptr);
                } else if (kind == 2) {
                    what = "majority or zero";
                    expected_status = terse_vote_scalar.majority_or_zero(expected_to[0], expected_to[1], host.data(), ranks, n);
                    status = terse_vote_cuda_majority_or_zero(to[0], to[1], device.data(), ranks, n, nullptr);
                } else if (kind == 3) {
                    what = "tally";
                    expected_status = terse_vote_scalar.tally(expected_to, host.data(), ranks, n);
                    status = terse_vote_cuda_tally(to, device.data(), ranks, n, nullptr);
                } else {
                    what = "majority, in place";
                    expected_status = terse_vote_scalar.majority(expected_to[0], host.data(), ranks, n, TERSE_ZERO_PLUS);
                    status = terse_vote_cuda_majority(there.at, device.data(), ranks, n, TERSE_ZERO_PLUS, nullptr);
                    if (bytes) must(cudaMemcpy(to[0], there.at, bytes, cudaMemcpyDeviceToDevice));
                }
                expect(status == TERSE_CODEC_OK && expected_status == TERSE_CODEC_OK, "vote cuda", n, "status");
                bool same = true;
                for (size_t k = 0; k < VOTE_PLANES; k++) same = same && out[k].get() == expected[k] && out[k].margins_are_whole();
                expect(same, "vote cuda", n, what);
            }
        }
    uint8_t *out = nullptr;
    std::vector<const uint8_t *> nobody(1025);
    expect(terse_vote_cuda_majority(out, nobody.data(), 3, 8, TERSE_ZERO_PLUS, nullptr) == TERSE_CODEC_BAD_RANKS, "vote cuda", 8, "nobody is refused");
    nobody.assign(1025, (const uint8_t *)&checks);
    expect(terse_vote_cuda_majority(out, nobody.data(), 1025, 8, TERSE_ZERO_PLUS, nullptr) == TERSE_CODEC_BAD_RANKS, "vote cuda", 8, "1025 ranks are refused");
    expect(terse_vote_cuda_majority(out, nobody.data(), 2, 8, TERSE_ZERO_UNSET, nullptr) == TERSE_CODEC_BAD_ZERO, "vote cuda", 8, "a tie that is not set");
}
}  // namespace

int check_golden() {
    const terse_golden_by by = {golden_codec, golden_vote};
    return terse_check_vectors(stdin, &by) != 0;
}

int check_long() {
    for (const configuration &c : configurations) {
        const terse_codec_cuda *codec;
        terse_codec_cuda_find(&codec, c.codec);
        for (const size_t n : {((size_t)1 << 20) - 3, ((size_t)1 << 20) + 1, ((size_t)1 << 20) + 4099}) check_length(codec, c, n, 2);
    }
    std::printf("1 Mi floats: %ld checks, %ld failed\n", checks, bad_checks);
    return bad_checks != 0;
}

int check_all(char **names, int count, bool everything) {
    const auto asked_for = [&](const char *name) {
        bool named = count == 0;
        for (int i = 0; i < count; i++) named = named || !std::strcmp(names[i], name);
        return named;
    };
    if (terse_codecs_cuda_abi() != TERSE_CODECS_CUDA_ABI) return std::printf("the library is of another ABI\n"), 1;
    const terse_codec_cuda *found;
    for (size_t i = 0; const terse_codec_cuda *codec = terse_codec_cuda_at(i); i++) {
        const char *name = codec->definition->name;
        if (!asked_for(name)) continue;
        const long before = checks;
        expect(terse_codec_cuda_find(&found, name) == TERSE_CODEC_OK && found == codec, name, 0, "found by its name");
        size_t turn = 0;  // of the codec's configurations
        for (const configuration &c : configurations) {
            if (std::strcmp(c.codec, name)) continue;
            turn++;
            const bool transforms = !std::strcmp(name, "dct-top-k");  // takes long
            const bool many = codec->definition->takes & (TERSE_TAKES_BLOCK | TERSE_TAKES_K) && !transforms;  // configurations: 3 or more
            for (const size_t &n : lengths)
                for (int kind = 0; kind < 3; kind++) {
                    if (transforms && random_word() % 6) continue;
                    // Long ones with one kind of numbers: each with another, and in the next configuration another again.
                    if (!everything && many && n > 300 && ((size_t)(&n - lengths) + turn) % 3 != (size_t)kind) continue;
                    check_length(codec, c, n, kind);
                }
            if (many)
                for (const size_t &n : long_lengths)
                    if (everything || (size_t)(&n - long_lengths) == turn % 6) check_length(codec, c, n, 2);
            check_refusals(codec, c);
        }
        if (!std::strcmp(name, "top-k")) check_selection(codec), check_look_back();
        std::printf("%s cuda %ld checks\n", name, checks - before);
        std::fflush(stdout);
    }
    expect(terse_codec_cuda_find(&found, "no such codec") == TERSE_CODEC_UNKNOWN, "find", 0, "an unknown name");
    if (asked_for("reductions")) check_reductions();
    if (asked_for("vote")) {
        const long before = checks;
        check_vote();
        std::printf("vote cuda %ld checks\n", checks - before);
    }
    if (bad_checks) std::printf("%ld of %ld checks failed\n", bad_checks, checks);
    return bad_checks != 0;
}
