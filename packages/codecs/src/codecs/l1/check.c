// Checks l1's single pass over long vectors: one group, whole vectors, and samples that mislead about the rest.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "one_pass.h"
#include "terse/walk.h"

enum { MARGIN = 40, LONG = TERSE_L1_LONG + 3 * TERSE_REDUCTION_CHUNK + 4321 };
static float long_room[LONG + MARGIN];
static uint8_t long_wires[2][LONG + 16];

static float tiny(void) { return (float)(random_word() % 200) * 0x1p-149f; }
static float spike(void) { return random_word() % 300 ? 0.0f : 1000.0f; }
static float nothing(void) { return 0.0f; }

// Checks one group of the single pass: the sums of its chunks, and that what it has decided is right for every factor
// that may follow.
static void check_group(const terse_l1_kernel *kernel, const char *by) {
    static float (*const numbers[])(void) = {gradient, near_one, with_a_norm, any_float, tiny, one_or_minus_one, spike};
    static terse_l1_undecided undecided[TERSE_L1_UNDECIDED];
    static uint8_t is_undecided[TERSE_L1_GROUP];
    for (unsigned bits = 2; bits <= 8; bits += (unsigned)stride)
        for (int kind = 0; kind < 8; kind++)
            for (int wide = 0; wide < 2; wide++) {
                const unsigned width = !wide                            ? bits
                                       : bits <= 4 && random_word() % 2 ? 4
                                       : random_word() % 2              ? 8
                                                                        : 16,
                               s = (1u << (bits - 1)) - 1;
                float *x = long_room + random_word() % MARGIN;
                uint8_t *fields = long_wires[0] + 1 + random_word() % 15;
                const double off = ldexp(1, -17 + (int)(random_word() % 14));
                for (size_t i = 0; i < TERSE_L1_GROUP; i++) x[i] = numbers[kind % 7]();
                const double mean = terse_reductions_scalar.sum_of_magnitudes(x, TERSE_L1_GROUP) / TERSE_L1_GROUP;
                const double factor = kind == 3 || kind == 4 ? ldexp(1, (int)(random_word() % 180) - 90)
                                                             : s / (2 * mean);
                if (kind == 7)  // at the edges between levels, and next to them
                    for (size_t i = 0; i < TERSE_L1_GROUP; i++)
                        x[i] = (float)(((double)(random_word() % (2 * s + 2)) - s - 0.5) / factor *
                                       (1 + ((double)(random_word() % 7) - 3) * 0x1p-24));
                const terse_l1_guess guess = {width, s, (float)(factor * (1 - off)), (float)factor,
                                              (float)(factor * (1 + off))};
                memset(long_wires[0], SENTINEL, sizeof *long_wires);
                double sums[4];
                const size_t count = kernel->read_group(sums, fields, undecided, x, &guess),
                             bytes = TERSE_L1_GROUP / 8 * width;
                for (size_t c = 0; c < 4; c++)
                    expect(same_double(sums[c], terse_reductions_scalar.sum_of_magnitudes(x + c * TERSE_REDUCTION_CHUNK,
                                                                                          TERSE_REDUCTION_CHUNK)),
                           "l1", by, c, "the sum of a chunk");
                expect(fields[-1] == SENTINEL && fields[bytes] == SENTINEL, "l1", by, bits,
                       "nothing is written beside a group");
                expect(count <= TERSE_L1_UNDECIDED || off * s > 1.0 / 64 || kind, "l1", by, bits, "few are undecided");
                if (count > TERSE_L1_UNDECIDED) continue;
                memset(is_undecided, 0, sizeof is_undecided);
                int listed = 1;
                for (size_t u = 0; u < count; u++)
                    listed &= !is_undecided[undecided[u].at]++ && !memcmp(&undecided[u].x, x + undecided[u].at, 4);
                expect(listed, "l1", by, bits, "the undecided, each once");
                const double by_factor[] = {guess.low * (1 + 0x1p-19), factor, guess.high * (1 - 0x1p-19)};
                for (int f = 0; f < 3; f++) {
                    size_t wrong = 0;
                    for (size_t i = 0; i < TERSE_L1_GROUP; i++)
                        wrong += !is_undecided[i] &&
                                 terse_field(fields, i, width) != terse_l1_field(x[i], s, by_factor[f]);
                    expect(!wrong, "l1", by, bits, "what is decided is so by every factor");
                }
            }
}

static void check_long(const terse_codec *codec, const terse_codec *scalar, const char *how, uint32_t bits,
                       int unscaled) {
    terse_codec_options o = TERSE_CODEC_OPTIONS;
    o.bits = bits, o.unscaled = (uint32_t)unscaled, o.width = unscaled ? 8 : 0;
    const float *x = long_room + 1;
    size_t bytes = 0, bad = 0, scalar_bad = 0;
    terse_codec_wire_bytes(codec, LONG, &o, &bytes);
    memset(long_wires, SENTINEL, sizeof long_wires);
    terse_walk_use(0, 1);  // a walk that measures both orders
    const terse_codec_status status = terse_codec_encode(codec, long_wires[0], bytes, x, LONG, &o, &bad);
    expect(terse_codec_encode(scalar, long_wires[1], bytes, x, LONG, &o, &scalar_bad) == status && bad == scalar_bad,
           "l1", codec->implementation, LONG, how);
    expect(status != TERSE_CODEC_OK || !memcmp(long_wires[0], long_wires[1], sizeof *long_wires), "l1",
           codec->implementation, LONG, how);
}

// Checks vectors long enough for the single pass, and samples that mislead about the rest.
static void check_one_pass(const terse_codec *codec, const terse_codec *scalar) {
    static const struct {
        const char *how;
        float (*number)(void);
    } kinds[] = {
        {"long: as gradients", gradient}, {"long: near one", near_one}, {"long: any", with_a_norm},
        {"long: ones", one_or_minus_one}, {"long: spikes", spike},      {"long: tiny", tiny},
        {"long: nothing", nothing},
    };
    float *x = long_room + 1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k += stride) {
        for (size_t i = 0; i < LONG; i++) x[i] = kinds[k].number();
        terse_codecs_use_threads(k % 2 ? 3 : 1);
        check_long(codec, scalar, kinds[k].how, k % 3 ? 4 : 2, 0);
    }
    for (size_t i = 0; i < LONG; i++) x[i] = (float)i * (i % 2 ? 1.0f : -1.0f);
    check_long(codec, scalar, "long: rising", 4, 0);
    x[0] = 3e38f;
    check_long(codec, scalar, "long: one is most of the sum", 3, 0);

    // Some groups lie at the edges between levels: more of their elements stay undecided than there is room for.
    for (size_t i = 0; i < LONG; i++) x[i] = gradient();
    const double factor = 7 / (2 * terse_reductions_scalar.sum_of_magnitudes(x, LONG) / LONG);
    const size_t stretch = terse_l1_stretch(LONG, 7);
    for (size_t g = 1; g < 4; g++)
        for (size_t i = g * TERSE_L1_GROUP; i < (g + 1) * TERSE_L1_GROUP; i++) {
            const float old = x[i];
            x[i] = (float)(rint(old * factor) + 0.5) / (float)factor;
        }
    check_long(codec, scalar, "long: undecided", 4, 0);
    check_long(codec, scalar, "long: undecided, unscaled", 4, 1);
    terse_codecs_use_threads(3);
    check_long(codec, scalar, "long: undecided, unscaled, on threads", 4, 1);

    // The sampled elements are so much smaller than the rest that many levels change.
    for (size_t i = 0; i < LONG; i++) x[i] = near_one();
    for (size_t i = 0; i < LONG / stretch; i++)
        for (size_t e = 0; e < TERSE_L1_SAMPLE; e++) x[terse_l1_sampled(stretch, i) + e] *= 0.9f;
    check_long(codec, scalar, "long: the sample misleads", 4, 0);
    for (size_t i = 0; i < LONG / stretch; i++)
        memset(x + terse_l1_sampled(stretch, i), 0, TERSE_L1_SAMPLE * sizeof *x);
    check_long(codec, scalar, "long: nothing in the sample", 4, 1);
    x[LONG / 2] = NAN, x[LONG - 3] = INFINITY;
    check_long(codec, scalar, "long: NaN", 4, 0);
    for (size_t i = 0; i < LONG; i++) x[i] = one_or_minus_one();
    x[LONG - 1] = -INFINITY;
    check_long(codec, scalar, "long: infinity behind the groups", 4, 1);
    x[LONG - 1] = 1;
    terse_codecs_use_threads(1);
    for (size_t i = 0; i < LONG; i++) x[i] = i % 1000 < 997 ? 3e38f : -3e38f;
    check_long(codec, scalar, "long: beyond fp32", 4, 0);
}

void terse_check_l1(void) {
    static const struct {
        const char *implementation;
        const terse_l1_kernel *kernel;
    } kernels[] = {
#if defined(__x86_64__)
        {"avx512", &terse_l1_kernel_avx512},
        {"avx2", &terse_l1_kernel_avx2},
#endif
        {NULL, NULL},
    };
    for (size_t i = 0; kernels[i].kernel; i++) {
        const char *by = kernels[i].implementation;
        if (!asked_for(by)) continue;
        const long before = checks;
        const terse_codec *codec, *scalar;
        check_group(kernels[i].kernel, by);
        if (terse_codec_find(&codec, "l1", by) == TERSE_CODEC_OK &&
            terse_codec_find(&scalar, "l1", "scalar") == TERSE_CODEC_OK)
            check_one_pass(codec, scalar);
        printf("l1 in one pass by %s: %ld checks\n", by, checks - before);
    }
}
