// Checks hard cases of top-k's selection, and how tiles look back at earlier tiles. How far they look back is chance on
// a GPU; in the emulator, where blocks run one after the other, it is always one tile.
#include "check.h"
#include "codecs/top-k/top_k.cuh"

namespace {
__global__ void look_back(unsigned long long *before, unsigned long long *states, size_t tile, unsigned long long own) {
    const unsigned long long all = before_tile(states, tile, own);
    if (lane_of_warp() == 0) *before = all;
}

terse_codec_status look_back_of(unsigned long long *before, unsigned long long *states, size_t tile,
                                unsigned long long own) {
    return launch(look_back, 1, WARP, nullptr, before, states, tile, own);
}

// Hard cases: many equal elements, borders of tiles, a sample that misleads about the rest.
void check_selection() {
    const terse_codec_cuda *codec;
    terse_codec_cuda_find(&codec, "top-k");
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
        {"a sample of large ones",
         [](size_t i, bool sampled) { return sampled ? 8.0f : 1.0f + (float)(i % 1000) * 0x1p-20f; }},
    };
    static const struct {
        terse_indices indices;
        terse_values values;
    } forms[] = {{TERSE_INDICES_FIXED, TERSE_VALUES_F32},
                 {TERSE_INDICES_ELIAS_FANO, TERSE_VALUES_F32},
                 {TERSE_INDICES_ELIAS_FANO, TERSE_VALUES_2BIT},
                 {TERSE_INDICES_ELIAS_FANO, TERSE_VALUES_SIGN}};
    for (const auto &v : vectors)
        for (const size_t n : {(size_t)1 << 16, (size_t)(1 << 16) + 4097, (size_t)150001}) {
            const size_t samples = top_k_samples(n), stride = n / samples;
            std::vector<float> x(n);
            for (size_t i = 0; i < n; i++)
                x[i] = v.at(i, i / stride < samples && top_k_sampled(stride, 1, i / stride) == i);
            const size_t ks[] = {1, samples + 7, n / 3, n};
            for (size_t c = 0; c < 8; c++) {
                const size_t k = ks[c % 4];
                const auto &form = forms[c < 4 ? 0 : 1 + (c + n) % 3];
                terse_codec_options o = TERSE_CODEC_OPTIONS;
                o.k = k, o.indices = form.indices, o.values = form.values;
                size_t bytes = 0, room = 0;
                terse_codec_cuda_wire_bytes(codec, n, &o, &bytes),
                    terse_codec_cuda_workspace_bytes(codec, n, &o, &room);
                device_bytes x_there(n * 4, 4), wire_there(bytes, random_word() % 16), workspace(room, 0), bad(8, 0);
                x_there.put(x.data());
                std::vector<uint8_t> wire(bytes);
                expect(terse_codec_encode(codec->definition, wire.data(), bytes, x.data(), n, &o, nullptr) ==
                           TERSE_CODEC_OK,
                       v.name, "cuda", n, "top-k in C");
                const terse_codec_status status = terse_codec_cuda_encode(
                    codec, wire_there.at, bytes, (const float *)x_there.at, n, &o, workspace.at, room,
                    (uint64_t *)bad.at, nullptr);
                expect(
                    status == TERSE_CODEC_OK && bad_on_device(bad) == TERSE_CODEC_CUDA_GOOD && wire_there.get() == wire,
                    v.name, "cuda", n, "top-k's bytes");
                std::vector<float> sum(n, 0.5f);
                device_bytes sum_there(n * 4, 4);
                sum_there.put(sum.data());
                terse_codec_decode_add(codec->definition, sum.data(), n, wire.data(), bytes, &o);
                expect(terse_codec_cuda_decode_add(codec, (float *)sum_there.at, n, wire_there.at, bytes, &o,
                                                   workspace.at, room, (uint64_t *)bad.at, nullptr) == TERSE_CODEC_OK &&
                           !std::memcmp(sum_there.get().data(), sum.data(), 4 * n),
                       v.name, "cuda", n, "what top-k's bytes stand for");
                expect(wire_there.margins_are_whole() && workspace.margins_are_whole(), v.name, "cuda", n,
                       "bytes outside top-k's arrays");
            }
        }
}

// Tile t counts t + 1 elements. The tiles after `whole` have published only their own count, no total.
void check_look_back() {
    for (const size_t tile : {0, 1, 31, 32, 33, 64, 65, 100, 200})
        for (const size_t whole : {0, 1, 2, 31, 32, 33, 63, 64, 65, 99, 199}) {
            if (whole > tile) continue;
            std::vector<unsigned long long> states(tile + 1);
            unsigned long long all = 0;
            for (size_t t = 0; t < tile; t++)
                all += t + 1, states[t] = t <= whole ? TILE_PREFIX | all : TILE_AGGREGATE | (t + 1);
            device_bytes states_there(8 * states.size(), 0), before(8, 0);
            states_there.put(states.data());
            expect(look_back_of((unsigned long long *)before.at, (unsigned long long *)states_there.at, tile,
                                tile + 1) == TERSE_CODEC_OK,
                   "top-k", "cuda", tile, "a look back");
            expect(bad_on_device(before) == all, "top-k", "cuda", tile, "how many are before a tile");
            states[tile] = TILE_PREFIX | (all + tile + 1);
            expect(!std::memcmp(states_there.get().data(), states.data(), 8 * states.size()), "top-k", "cuda", tile,
                   "what a tile tells");
        }
}
}  // namespace

void terse_check_top_k_cuda() {
    const long before = checks;
    check_selection();
    check_look_back();
    std::printf("selections of top-k by cuda: %ld checks\n", checks - before);
}
