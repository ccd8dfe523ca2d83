// Compares what top-k keeps of long vectors with what sorting keeps. In long vectors top-k copies the candidates, on
// one thread or several.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "top_k.h"

enum { N = (1 << 19) + 4321, MARGIN = 40 };
static float long_room[N + MARGIN];
static uint8_t long_wires[2][N + 16];

static float nothing(void) { return 0.0f; }
static int by_magnitude(const void *a, const void *b) {
    const uint32_t left = terse_magnitude_bits(a), right = terse_magnitude_bits(b);
    return left < right ? 1 : left > right ? -1 : 0;
}

static float one_of_three(void) { return (float)(random_word() % 3) - 1.0f; }
static float seldom(void) { return random_word() % 4000 ? 0.0f : near_one(); }

static void check_top_k(const terse_codec *codec) {
    enum { N = (1 << 19) + 4321 };
    static const struct { const char *how; float (*number)(void); } kinds[] = {
        {"top-k: as gradients", gradient}, {"top-k: any", any_float}, {"top-k: near one", near_one}, {"top-k: ties", one_or_minus_one},
        {"top-k: most are ties", one_of_three}, {"top-k: mostly nothing", seldom}, {"top-k: rising", gradient}, {"top-k: a run", nothing},
        {"top-k: the sample is larger", near_one}, {"top-k: the sample is smaller", near_one},
    };
    static float sorted[N];
    float *x = long_room + 3;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind += stride) {
        for (size_t i = 0; i < N; i++) x[i] = kind == 6 ? (float)i : kinds[kind].number();
        for (size_t i = 0; kind == 7 && i < 3000; i++) x[N / 2 + i] = near_one();
        const size_t places = top_k_sampled_places(N);
        for (size_t i = 0; kind > 7 && i < places; i++)
            for (size_t e = 0; e < TOP_K_NEIGHBOURS; e++) x[top_k_sampled(N / places, TOP_K_NEIGHBOURS, i) + e] *= kind == 8 ? 1000.0f : 0.001f;
        memcpy(sorted, x, sizeof sorted);
        qsort(sorted, N, sizeof *sorted, by_magnitude);
        const size_t ks[] = {1, 1000, 2999, N / 1000, N / 100, N / 8, N / 7};
        for (size_t c = 0; c < sizeof ks / sizeof *ks; c++) {
            terse_codec_options o = TERSE_CODEC_OPTIONS;
            o.k = ks[c];
            const uint32_t least = terse_magnitude_bits(sorted + o.k - 1);
            size_t ties = 0, bytes = 0, bad;
            while (ties < o.k && terse_magnitude_bits(sorted + o.k - 1 - ties) == least) ties++;
            terse_codec_wire_bytes(codec, N, &o, &bytes);
            memset(long_wires, SENTINEL, sizeof long_wires);
            terse_chosen_writer writer = terse_chosen_writer_at(long_wires[1] + 5, o.k, N);
            for (size_t i = 0; i < N; i++) {
                const uint32_t magnitude = terse_magnitude_bits(x + i);
                if (magnitude < least || (magnitude == least && ties == 0)) continue;
                ties -= magnitude == least;
                terse_choose(&writer, i, x + i);
            }
            terse_chosen_end(&writer);
            for (unsigned threads = 1; threads < 4; threads += 2) {
                terse_codecs_use_threads(threads);
                memset(long_wires[0], SENTINEL, sizeof *long_wires);
                expect(terse_codec_encode(codec, long_wires[0] + 5, bytes, x, N, &o, &bad) == TERSE_CODEC_OK && !memcmp(long_wires[0], long_wires[1], bytes + 16), codec->name, codec->implementation, o.k, kinds[kind].how);
            }
        }
        const size_t first = random_word() % N;
        x[first] = NAN, x[N - 1] = INFINITY;
        terse_codec_options o = TERSE_CODEC_OPTIONS;
        o.k = 100;
        size_t bytes = 0, bad = 0;
        terse_codec_wire_bytes(codec, N, &o, &bytes);
        expect(terse_codec_encode(codec, long_wires[0], bytes, x, N, &o, &bad) == TERSE_CODEC_NOT_FINITE && bad == first, codec->name, codec->implementation, N, kinds[kind].how);
    }
    terse_codecs_use_threads(1);
}

void terse_check_top_k(void) {
    const terse_codec *codec;
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        if (strcmp(codec->name, "top-k") || !asked_for(codec->implementation)) continue;
        const long before = checks;
        check_top_k(codec);
        printf("top-k of long vectors by %s: %ld checks\n", codec->implementation, checks - before);
    }
}
