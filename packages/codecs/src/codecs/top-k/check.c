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
static size_t kept_places[N];
static float kept_floats[N];

static float nothing(void) { return 0.0f; }
static int by_magnitude(const void *a, const void *b) {
    const uint32_t left = terse_magnitude_bits(a), right = terse_magnitude_bits(b);
    return left < right ? 1 : left > right ? -1 : 0;
}

static float one_of_three(void) { return (float)(random_word() % 3) - 1.0f; }
static float seldom(void) { return random_word() % 4000 ? 0.0f : near_one(); }

// The wire of fp32 with indices of either kind, one bit after the other.
static void set_bit(uint8_t *bits, size_t at) { bits[at / 8] = (uint8_t)(bits[at / 8] | 1 << at % 8); }
static void write_places(uint8_t *to, size_t k, size_t bytes, terse_indices indices) {
    int width = 0, low = 0;
    while ((size_t)1 << width < N) width++;
    while (k << (low + 1) <= N) low++;
    const int fixed = indices == TERSE_INDICES_FIXED, bitmap = !fixed && N < k * (size_t)low + k + ((size_t)N >> low);
    memset(to, 0, bytes);
    for (size_t j = 0; j < k; j++) {
        const size_t place = kept_places[j];
        const int bits = fixed ? width : bitmap ? 0 : low;
        for (int bit = 0; bit < bits; bit++)
            if (place >> bit & 1) set_bit(to, j * (size_t)bits + (size_t)bit);
        if (bitmap) set_bit(to, place);
        else if (!fixed) set_bit(to, k * (size_t)low + (place >> low) + j);
    }
}

static void write_bit_by_bit(uint8_t *wire, const terse_codec_options *o) {
    const top_k_wire parts = top_k_wire_of(N, o);
    write_places(wire, o->k, parts.values, o->indices);
    memcpy(wire + parts.values, kept_floats, 4 * o->k);
}

// On one thread and on three; the expected wire is long_wires[1].
static void compare(const terse_codec *codec, const float *x, const terse_codec_options *o, size_t bytes,
                    const char *how) {
    size_t bad;
    for (unsigned threads = 1; threads < 4; threads += 2) {
        terse_codecs_use_threads(threads);
        memset(long_wires[0], SENTINEL, sizeof *long_wires);
        expect(terse_codec_encode(codec, long_wires[0] + 5, bytes, x, N, o, &bad) == TERSE_CODEC_OK &&
                   !memcmp(long_wires[0], long_wires[1], bytes + 16),
               codec->name, codec->implementation, o->k, how);
    }
}

// Elias-Fano's indices. Values that are not fp32 are the same where there was no memory for a copy of them; that the
// copy gives what the definition says is for the golden bytes.
static void check_other_forms(const terse_codec *codec, const float *x, size_t k, const char *how) {
    terse_codec_options o = TERSE_CODEC_OPTIONS;
    o.k = k, o.indices = TERSE_INDICES_ELIAS_FANO;
    const terse_values values[] = {TERSE_VALUES_F32, TERSE_VALUES_2BIT, TERSE_VALUES_SIGN};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        o.values = values[v];
        const top_k_wire parts = top_k_wire_of(N, &o);
        memset(long_wires[1], SENTINEL, sizeof *long_wires);
        write_places(long_wires[1] + 5 + parts.indices, k, parts.layout.bytes, o.indices);
        if (o.values == TERSE_VALUES_F32) memcpy(long_wires[1] + 5 + parts.values, kept_floats, 4 * k);
        else top_k_write_values(&top_k_scalar_kernel, long_wires[1] + 5, NULL, x, N, &o);
        compare(codec, x, &o, parts.bytes, how);
    }
}

static void check_top_k(const terse_codec *codec) {
    enum { N = (1 << 19) + 4321 };
    static const struct {
        const char *how;
        float (*number)(void);
    } kinds[] = {
        {"top-k: as gradients", gradient},
        {"top-k: any", any_float},
        {"top-k: near one", near_one},
        {"top-k: ties", one_or_minus_one},
        {"top-k: most are ties", one_of_three},
        {"top-k: mostly nothing", seldom},
        {"top-k: rising", gradient},
        {"top-k: a run", nothing},
        {"top-k: the sample is larger", near_one},
        {"top-k: the sample is smaller", near_one},
    };
    static float sorted[N];
    float *x = long_room + 3;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind += stride) {
        for (size_t i = 0; i < N; i++) x[i] = kind == 6 ? (float)i : kinds[kind].number();
        for (size_t i = 0; kind == 7 && i < 3000; i++) x[N / 2 + i] = near_one();
        const size_t places = top_k_sampled_places(N);
        for (size_t i = 0; kind > 7 && i < places; i++)
            for (size_t e = 0; e < TOP_K_NEIGHBOURS; e++)
                x[top_k_sampled(N / places, TOP_K_NEIGHBOURS, i) + e] *= kind == 8 ? 1000.0f : 0.001f;
        memcpy(sorted, x, sizeof sorted);
        qsort(sorted, N, sizeof *sorted, by_magnitude);
        const size_t ks[] = {1, 1000, 2999, N / 1000, N / 100, N / 8, N / 7};
        for (size_t c = 0; c < sizeof ks / sizeof *ks; c++) {
            terse_codec_options o = TERSE_CODEC_OPTIONS;
            o.k = ks[c];
            const uint32_t least = terse_magnitude_bits(sorted + o.k - 1);
            size_t ties = 0, bytes = 0;
            while (ties < o.k && terse_magnitude_bits(sorted + o.k - 1 - ties) == least) ties++;
            terse_codec_wire_bytes(codec, N, &o, &bytes);
            memset(long_wires, SENTINEL, sizeof long_wires);
            size_t kept = 0;
            for (size_t i = 0; i < N; i++) {
                const uint32_t magnitude = terse_magnitude_bits(x + i);
                if (magnitude < least || (magnitude == least && ties == 0)) continue;
                ties -= magnitude == least;
                kept_places[kept] = i, kept_floats[kept++] = x[i];
            }
            write_bit_by_bit(long_wires[1] + 5, &o);
            compare(codec, x, &o, bytes, kinds[kind].how);
            check_other_forms(codec, x, o.k, kinds[kind].how);
        }
        const size_t first = random_word() % N;
        x[first] = NAN, x[N - 1] = INFINITY;
        terse_codec_options o = TERSE_CODEC_OPTIONS;
        o.k = 100;
        size_t bytes = 0, bad = 0;
        terse_codec_wire_bytes(codec, N, &o, &bytes);
        expect(
            terse_codec_encode(codec, long_wires[0], bytes, x, N, &o, &bad) == TERSE_CODEC_NOT_FINITE && bad == first,
            codec->name, codec->implementation, N, kinds[kind].how);
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
