// Every implementation of every codec, and of the vote, against its scalar one: same bytes, same sums, same first bad element,
// nothing outside the arrays touched, whatever the length, the alignment and the order of pages. Exit status 1 if anything differs.
//     codecs_check [--few-lengths] [IMPLEMENTATION]      all, or those of one name
//     codecs_check --vectors             against the golden vectors on standard input: check_vectors.h
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../packages/codecs/src/codecs/l1/one_pass.h"
#include "../../packages/codecs/src/shared/reductions/reductions.h"
#include "../../packages/codecs/src/shared/random/random.h"
#include "../../packages/codecs/src/shared/scale-groups/scale_groups.h"
#include "../../packages/codecs/src/codecs/sign/sign.h"
#include "../../packages/codecs/src/codecs/top-k/top_k.h"
#include "check_vectors.h"
#include "terse/codecs.h"
#include "terse/walk.h"

enum { MAX = 8400, WIRE = MAX * 8 + 80, SENTINEL = 0xA5, MARGIN = 40 };

static long checks, bad;

static uint64_t random_state = 0x9E3779B97F4A7C15u;
static uint64_t random_word(void) {  // splitmix64
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void random_bytes(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t word = random_word();
        memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

// Any finite float; zeros of both signs, denormals and the largest floats are more frequent than by chance.
static float random_float(void) {
    const uint64_t r = random_word();
    switch (r % 8) {
        case 0: return 0.0f;
        case 1: return -0.0f;
        case 2: return (r & 8 ? 1 : -1) * 0x1p-149f;
        case 3: return (r & 8 ? 1 : -1) * 0x1.fffffep127f;
    }
    const uint32_t bits = (uint32_t)(r >> 32);
    float x;
    memcpy(&x, &bits, 4);
    return isfinite(x) ? x : 1.0f;
}

// What bf16 and f16 can write: the ends of their range, and every kind of rounding below.
static float random_bf16(void) {
    const float x = random_float();
    return fabsf(x) < 0x1.ffp127f ? x : copysignf(0x1.fefffep127f, x);
}
static float random_f16(void) {
    const uint64_t r = random_word();
    if (r % 8 == 0) return r & 8 ? 65519.996f : -65519.996f;
    const float x = random_float();
    int exponent;
    const float fraction = frexpf(x, &exponent);
    return ldexpf(fraction, (int)(r / 8 % 43) - 27);  // 2^-28 .. 2^15
}

static void expect(int good, const char *what, const char *implementation, size_t n, const char *how) {
    checks++;
    if (good) return;
    if (bad++ < 20) printf("%s %s differs from scalar at n = %zu: %s\n", what, implementation, n, how);
}

// Lengths 0..70, around multiples of 64, primes, and around the groups of pages and blocks that kernels walk.
static size_t lengths[128], length_count;
static size_t stride = 1;  // of the kinds of long vectors, and of the numbers of bits of their groups: each is tried, or each third
static void list_lengths(void) {
    for (size_t n = 0; n <= 70; n++) lengths[length_count++] = n;
    static const size_t more[] = {127, 128, 129, 191, 192, 193, 255, 256, 257, 1021, 4095, 4096, 4097, 4160, 4199, 5003, 8191, 8192, 8265};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) lengths[length_count++] = more[i];
}

// A third of the work, for machines that are emulated and programs that are watched: lengths around bytes, and one of each kind of the rest.
static void list_few_lengths(void) {
    stride = 3;
    for (size_t n = 0; n <= 70; n++)
        if (n % 8 < 2 || n % 8 == 7) lengths[length_count++] = n;
    static const size_t more[] = {128, 193, 257, 1021, 4096, 4199, 8265};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) lengths[length_count++] = more[i];
}

// One way to use a codec. What depends on n is filled in by `fill`.
typedef struct configuration {
    const char *codec;
    void (*fill)(terse_codec_options *options, size_t n);
    float (*number)(void);  // numbers that the codec can write; any finite ones where NULL
    size_t least;           // fewest floats that it writes
} configuration;

static uint8_t hold_room[WIRE];
static size_t segments_room[4];

static void zeros_plus(terse_codec_options *o, size_t n) { (void)n, o->zero = TERSE_ZERO_PLUS; }
static void zeros_minus_and_a_mask(terse_codec_options *o, size_t n) {
    o->zero = TERSE_ZERO_MINUS, o->hold = hold_room + n % 7;
}

// Segments of every kind: an empty one, one of one element, odd ends.
static void by_segments(terse_codec_options *o, size_t n) {
    segments_room[0] = 0, segments_room[1] = n / 3, segments_room[2] = n ? n - 1 : 0, segments_room[3] = n;
    if (segments_room[2] < segments_room[1]) segments_room[2] = segments_room[1];
    o->segments = segments_room, o->segment_count = 4;
}

// And of whole bytes of signs.
static void zeros_minus_by_segments_of_bytes(terse_codec_options *o, size_t n) {
    segments_room[0] = 0, segments_room[1] = n / 3 / 8 * 8, segments_room[2] = n / 2 / 8 * 8, segments_room[3] = n;
    o->segments = segments_room, o->segment_count = 4, o->zero = TERSE_ZERO_MINUS;
}

static void zeros_plus_by_segments(terse_codec_options *o, size_t n) { by_segments(o, n), o->zero = TERSE_ZERO_PLUS; }
static void blocks_of_37(terse_codec_options *o, size_t n) { (void)n, o->block = 37; }
static void blocks_of_24(terse_codec_options *o, size_t n) { (void)n, o->zero = TERSE_ZERO_PLUS, o->block = 24; }
static void clipped_blocks_of_512(terse_codec_options *o, size_t n) { (void)n, o->block = 512, o->clip = 2.5f; }
static void masked_blocks_of_37(terse_codec_options *o, size_t n) { zeros_minus_and_a_mask(o, n), o->block = 37; }
static void blocks_of_512(terse_codec_options *o, size_t n) { (void)n, o->zero = TERSE_ZERO_PLUS, o->block = 512; }
static void nothing_set(terse_codec_options *o, size_t n) { (void)o, (void)n; }

static void keep_one(terse_codec_options *o, size_t n) { (void)n, o->k = 1; }
static void keep_some(terse_codec_options *o, size_t n) { o->k = n / 7 + 1; }
static void keep_a_tenth(terse_codec_options *o, size_t n) { o->k = n / 10 + 1; }
static void keep_all(terse_codec_options *o, size_t n) { o->k = n; }
// Numbers as gradients have them, over some orders of magnitude.
static float gradient(void) {
    const uint64_t r = random_word();
    return r % 8 == 0 ? 0.0f : ldexpf((float)(int32_t)(r >> 32), -31 - (int)(r >> 3 & 7));
}
// Any, but so that thousands of them have a norm and twice a mean in fp32.
static float with_a_norm(void) { return random_float() * 0x1p-8f; }

static void five_bits(terse_codec_options *o, size_t n) { (void)n, o->bits = 5; }
static void two_bits_by_segments(terse_codec_options *o, size_t n) { o->bits = 2, by_segments(o, n); }
static void eight_bits_by_blocks(terse_codec_options *o, size_t n) { (void)n, o->bits = 8, o->block = 192; }
static void three_bits_by_odd_blocks(terse_codec_options *o, size_t n) { (void)n, o->bits = 3, o->block = 77; }
static void six_bits_by_segments(terse_codec_options *o, size_t n) { o->bits = 6, by_segments(o, n); }
static void seven_bits(terse_codec_options *o, size_t n) { (void)n, o->bits = 7; }
static void four_bits_in_wide_fields(terse_codec_options *o, size_t n) { (void)n, o->bits = 4, o->width = 8, o->unscaled = 1, o->ranks = 16; }
static void two_bits_in_wider_fields(terse_codec_options *o, size_t n) { (void)n, o->bits = 2, o->width = 16, o->unscaled = 1, o->ranks = 21845, o->block = 100; }
static void six_bits_in_16(terse_codec_options *o, size_t n) { (void)n, o->bits = 6, o->width = 16; }
static void three_bits_in_8_by_blocks(terse_codec_options *o, size_t n) { (void)n, o->bits = 3, o->width = 8, o->block = 320; }
// As much as a unit may be, less than what is written, and none at all.
static float units_room[MAX];
static void by_units(terse_codec_options *o, size_t n) {
    o->unscaled = 1, o->units = units_room;
    o->unit_count = o->segments ? o->segment_count : o->block ? n / o->block + (n % o->block != 0) : n != 0;
    for (size_t r = 0; r < o->unit_count; r++) units_room[r] = r % 5 == 3 ? 0.0f : r % 7 == 5 ? 0x1p111f : 0.003f * (float)(r % 3 + 1);
}
static void eleven_levels_a_side(terse_codec_options *o, size_t n) { (void)n, o->bits = 5, o->side = 11; }
static void levels_for_three_ranks(terse_codec_options *o, size_t n) { o->bits = 7, o->side = 42, o->width = 8, o->ranks = 3, o->unscaled = 1, by_segments(o, n); }
static void levels_for_five_ranks_by_units(terse_codec_options *o, size_t n) { o->bits = 6, o->side = 25, o->width = 8, o->ranks = 5, o->block = 200, by_units(o, n); }
static void five_bits_by_a_unit(terse_codec_options *o, size_t n) { o->bits = 5, by_units(o, n); }
static void eight_bits_by_units_of_blocks(terse_codec_options *o, size_t n) { o->bits = 8, o->width = 16, o->ranks = 200, o->block = 77, by_units(o, n); }
static void two_bits_by_units_of_segments(terse_codec_options *o, size_t n) { o->bits = 2, o->width = 8, o->ranks = 80, by_segments(o, n), by_units(o, n); }
static void two_bits_in_nibbles(terse_codec_options *o, size_t n) { o->bits = 2, o->width = 4, o->unscaled = 1, o->ranks = 5, by_segments(o, n); }

static float whole_from_minus_1_to_1(void) { return (float)((int)(random_word() % 3) - 1); }
static float whole_from_minus_127_to_127(void) { return (float)((int)(random_word() % 255) - 127); }
static void signs_in_nibbles(terse_codec_options *o, size_t n) { (void)n, o->width = 4, o->ranks = 15, o->zero = TERSE_ZERO_PLUS; }
static void signs_in_pairs_of_bits(terse_codec_options *o, size_t n) { (void)n, o->bits = 1, o->width = 2, o->ranks = 3, o->zero = TERSE_ZERO_MINUS; }
static void signs_in_bytes(terse_codec_options *o, size_t n) { (void)n, o->width = 8, o->ranks = 200, o->zero = TERSE_ZERO_MINUS; }
static void signs_in_16_bits(terse_codec_options *o, size_t n) { (void)n, o->width = 16, o->ranks = 1001, o->zero = TERSE_ZERO_PLUS; }
static void wholes_of_2_bits(terse_codec_options *o, size_t n) { (void)n, o->bits = 2, o->zero = TERSE_ZERO_PLUS; }
static void wholes_of_8_bits(terse_codec_options *o, size_t n) { (void)n, o->bits = 8, o->width = 8, o->zero = TERSE_ZERO_PLUS; }
static void wholes_of_8_bits_in_16(terse_codec_options *o, size_t n) { (void)n, o->bits = 8, o->width = 16, o->ranks = 257, o->zero = TERSE_ZERO_PLUS; }

static void three_bits_without_zero(terse_codec_options *o, size_t n) { (void)n, o->bits = 3, o->levels = TERSE_LEVELS_WITHOUT_ZERO; }
static void four_bits_logarithmic(terse_codec_options *o, size_t n) { (void)n, o->bits = 4, o->levels = TERSE_LEVELS_LOGARITHMIC; }
static void eight_bits_logarithmic_by_blocks(terse_codec_options *o, size_t n) { (void)n, o->bits = 8, o->block = 1000, o->levels = TERSE_LEVELS_LOGARITHMIC; }
static void two_bits_logarithmic_by_segments(terse_codec_options *o, size_t n) { o->bits = 2, o->levels = TERSE_LEVELS_LOGARITHMIC, by_segments(o, n); }

// Numbers whose coefficients fit.
static float random_moderate(void) { return random_float() * 0x1p-20f; }
static void chunks_of_64(terse_codec_options *o, size_t n) { (void)n, o->block = 64, o->k = 8; }
static void odd_chunks(terse_codec_options *o, size_t n) { o->block = 3 * (n % 50) + 7, o->k = 5; }
static void long_chunks(terse_codec_options *o, size_t n) { (void)n, o->block = 768, o->k = 20, o->dimensions = 1; }
static void longest_chunks(terse_codec_options *o, size_t n) {  // where the last one is no long odd one, which takes its square
    o->block = o->k = n && n % 4096 == 0 ? 4096 : 640;
}
static void squares(terse_codec_options *o, size_t n) {  // the largest that n is a multiple of
    o->block = 1, o->k = 1, o->dimensions = 2;
    for (size_t side = 2; side <= 128; side++)
        if (n % (side * side) == 0) o->block = side, o->k = side;
}

static const configuration configurations[] = {
    {"linf", five_bits, gradient, 0},
    {"linf", five_bits, NULL, 0},
    {"linf", eight_bits_by_blocks, gradient, 0},
    {"linf", six_bits_by_segments, gradient, 0},
    {"linf", three_bits_without_zero, gradient, 0},
    {"linf", four_bits_logarithmic, gradient, 0},
    {"linf", four_bits_logarithmic, NULL, 0},
    {"linf", eight_bits_logarithmic_by_blocks, with_a_norm, 0},
    {"linf", eight_bits_logarithmic_by_blocks, gradient, 0},
    {"linf", two_bits_logarithmic_by_segments, gradient, 0},
    {"linf", four_bits_in_wide_fields, gradient, 0},
    {"linf", two_bits_in_wider_fields, NULL, 0},
    {"qsgd", five_bits, gradient, 0},
    {"qsgd", five_bits, with_a_norm, 0},
    {"qsgd", eight_bits_by_blocks, gradient, 0},
    {"qsgd", three_bits_by_odd_blocks, gradient, 0},
    {"qsgd", two_bits_by_segments, gradient, 0},
    {"count", signs_in_nibbles, NULL, 0},
    {"count", signs_in_pairs_of_bits, NULL, 0},
    {"count", signs_in_bytes, NULL, 0},
    {"count", signs_in_16_bits, NULL, 0},
    {"count", wholes_of_2_bits, whole_from_minus_1_to_1, 0},
    {"count", wholes_of_8_bits, whole_from_minus_127_to_127, 0},
    {"count", wholes_of_8_bits_in_16, whole_from_minus_127_to_127, 0},
    {"l1", five_bits, gradient, 0},
    {"l1", five_bits, with_a_norm, 0},
    {"l1", two_bits_by_segments, gradient, 0},
    {"l1", eight_bits_by_blocks, gradient, 0},
    {"l1", three_bits_by_odd_blocks, gradient, 0},
    {"l1", six_bits_by_segments, gradient, 0},
    {"l1", seven_bits, gradient, 0},
    {"l1", four_bits_in_wide_fields, gradient, 0},
    {"l1", two_bits_in_wider_fields, with_a_norm, 0},
    {"l1", two_bits_in_nibbles, gradient, 0},
    {"l1", six_bits_in_16, gradient, 0},
    {"l1", three_bits_in_8_by_blocks, gradient, 0},
    {"l1", eleven_levels_a_side, gradient, 0},
    {"l1", levels_for_three_ranks, gradient, 0},
    {"l1", levels_for_five_ranks_by_units, gradient, 0},
    {"l1", five_bits_by_a_unit, NULL, 0},
    {"l1", eight_bits_by_units_of_blocks, gradient, 0},
    {"l1", two_bits_by_units_of_segments, with_a_norm, 0},
    {"linf", five_bits_by_a_unit, gradient, 0},
    {"linf", eight_bits_by_units_of_blocks, NULL, 0},
    {"linf", two_bits_by_units_of_segments, gradient, 0},
    {"sign", zeros_plus, NULL, 0},
    {"sign", zeros_minus_and_a_mask, NULL, 0},
    {"bf16", nothing_set, random_bf16, 0},
    {"f16", nothing_set, random_f16, 0},
    {"int8", nothing_set, NULL, 0},
    {"int8", blocks_of_37, random_bf16, 0},
    {"int8", by_segments, random_f16, 0},
    {"scaled-sign", zeros_plus, NULL, 0},
    {"scaled-sign", zeros_minus_and_a_mask, NULL, 0},
    {"scaled-sign", masked_blocks_of_37, NULL, 0},
    {"scaled-sign", blocks_of_512, NULL, 0},
    {"scaled-sign", zeros_plus_by_segments, NULL, 0},
    {"scaled-sign", zeros_minus_by_segments_of_bytes, NULL, 0},
    {"scaled-sign", blocks_of_24, NULL, 0},
    {"ternary", nothing_set, NULL, 0},
    {"terngrad", nothing_set, random_f16, 0},
    {"terngrad", clipped_blocks_of_512, random_f16, 0},
    {"terngrad", blocks_of_37, NULL, 0},
    {"terngrad", by_segments, random_f16, 0},
    {"dct-top-k", chunks_of_64, random_moderate, 0},
    {"dct-top-k", odd_chunks, random_moderate, 0},
    {"dct-top-k", long_chunks, random_moderate, 0},
    {"dct-top-k", longest_chunks, random_moderate, 0},
    {"dct-top-k", squares, random_moderate, 0},
    {"top-k", keep_one, NULL, 1},
    {"top-k", keep_some, NULL, 1},
    {"top-k", keep_a_tenth, NULL, 1},
    {"top-k", keep_a_tenth, gradient, 1},
    {"top-k", keep_all, NULL, 1},
};

// How a codec without a line above is used: with what it takes.
static uint32_t taken;
static void what_it_takes(terse_codec_options *o, size_t n) {
    if (taken & TERSE_TAKES_ZERO) o->zero = TERSE_ZERO_PLUS;
    if (taken & TERSE_TAKES_BITS) o->bits = 4;
    if (taken & TERSE_TAKES_K) o->k = taken & TERSE_TAKES_BLOCK ? 5 : n / 7 + 1;
    if (taken & TERSE_TAKES_BLOCK) o->block = 37;
}

static float x_room[MAX + 2 * MARGIN], sum_room[2][MAX + 2 * MARGIN], error_room[2][MAX];
static uint8_t wire_room[2][WIRE + 2 * MARGIN];

static terse_codec_status decode_part(const terse_codec *codec, float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    if (codec->is_good && !codec->is_good(wire, n, o, begin, end)) return TERSE_CODEC_BAD_WIRE;
    return codec->decode_add(sum, wire, n, o, begin, end);
}

static void check_codec(const terse_codec *codec, const terse_codec *scalar, const configuration *c) {
    const char *name = codec->name, *by = codec->implementation;
    for (size_t l = 0; l < length_count; l++) {
        const size_t n = lengths[l];
        if (n < c->least) continue;
        for (int kind = 0; kind < 3; kind++) {
            terse_walk_use(random_word() % 2 ? 1 : 4, 1);
            // Odd starts: the wire at any byte, the floats at any float.
            const size_t shift = random_word() % 32;
            float *x = x_room + shift;
            uint8_t *wire = wire_room[0] + shift, *expected = wire_room[1] + shift;
            float (*const number)(void) = c->number ? c->number : random_float;
            for (size_t i = 0; i < n; i++) x[i] = kind == 0 ? i % 2 ? 0.0f : -0.0f : number();
            random_bytes(hold_room, n / 8 + 16);
            terse_codec_options options = TERSE_CODEC_OPTIONS;
            c->fill(&options, n);
            options.seed = random_word(), options.step = random_word(), options.index = random_word() / 64 * 64;
            options.scale = kind == 1 ? 1.0f : 0.3f;

            size_t bytes = 0, scalar_bytes = 0, bad, scalar_bad;
            expect(terse_codec_wire_bytes(codec, n, &options, &bytes) == TERSE_CODEC_OK && terse_codec_wire_bytes(scalar, n, &options, &scalar_bytes) == TERSE_CODEC_OK && bytes == scalar_bytes && bytes <= WIRE, name, by, n, "bytes for n floats");
            if (bytes > WIRE) return;

            // What may be touched by mistake is looked for in all of the rooms once for each length, and then near the arrays: a room is much
            // longer than most wires.
            const size_t near = shift + bytes + MARGIN, wires = kind == 0 ? sizeof *wire_room : near, sums = kind == 0 ? sizeof *sum_room : 4 * (n + 2 * MARGIN);
            for (int side = 0; side < 2; side++) memset(wire_room[side], SENTINEL, wires);
            expect(terse_codec_encode(codec, wire, bytes, x, n, &options, &bad) == TERSE_CODEC_OK && terse_codec_encode(scalar, expected, bytes, x, n, &options, &bad) == TERSE_CODEC_OK, name, by, n, "encode");
            expect(!memcmp(wire_room[0], wire_room[1], wires), name, by, n, "wire bytes, or bytes outside the wire");

            static float scales_room[MAX];
            const size_t groups = terse_scale_group_count(n, &options);
            if (codec->scales && !options.unscaled) {
                expect(terse_codec_scales(codec, scales_room, groups, x, n, &options, &bad) == TERSE_CODEC_OK && !memcmp(scales_room, wire, 4 * groups), name, by, n, "scales");
            }

            // In parts, as threads do it.
            if (!codec->whole && n > 64) {
                memset(wire_room[0], SENTINEL, near);
                const size_t cut = random_word() % n / 64 * 64;
                expect(!codec->prepare || codec->prepare(wire, x, n, &options) == n, name, by, n, "prepare");
                expect(codec->encode(wire, x, n, &options, cut, n) == n && codec->encode(wire, x, n, &options, 0, cut) == cut, name, by, n, "encode in parts");
                expect(!memcmp(wire_room[0], wire_room[1], near), name, by, n, "wire bytes when encoded in parts");
            }

            for (int any = 0; any < 2; any++) {
                if (any) random_bytes(wire, bytes), memcpy(expected, wire, bytes);  // any byte may arrive
                for (size_t i = 0; i < n + 2 * MARGIN; i++) sum_room[0][i] = sum_room[1][i] = random_float() * 0.25f;
                const terse_codec_status status = terse_codec_decode_add(scalar, sum_room[1] + shift, n, expected, bytes, &options);
                if (codec->whole || random_word() % 2) {
                    expect(terse_codec_decode_add(codec, sum_room[0] + shift, n, wire, bytes, &options) == status, name, by, n, "decode_add's status");
                } else {
                    const size_t cut = n ? random_word() % n / 64 * 64 : 0;
                    const terse_codec_status first = decode_part(codec, sum_room[0] + shift, wire, n, &options, 0, cut);
                    const terse_codec_status second = decode_part(codec, sum_room[0] + shift, wire, n, &options, cut, n);
                    expect((first == TERSE_CODEC_OK && second == TERSE_CODEC_OK) == (status == TERSE_CODEC_OK) || cut == 0, name, by, n, "decode_add's status, in parts");
                    if (status != TERSE_CODEC_OK) continue;  // one part may have been good
                }
                expect(!memcmp(sum_room[0], sum_room[1], sums), name, by, n, "decoded sums, or floats outside them");
                expect(any || status == TERSE_CODEC_OK, name, by, n, "its own wire is good");
            }

            for (int side = 0; side < 2; side++) memset(error_room[side], 0, 4 * (n + MARGIN));
            for (int side = 0; side < 2; side++)
                for (int step = 0; step < 2; step++)
                    terse_codec_encode_with_feedback(side ? scalar : codec, wire_room[side] + shift, bytes, x, error_room[side], n, &options, &bad);
            expect(!memcmp(error_room[0], error_room[1], 4 * (n + MARGIN)), name, by, n, "error feedback");

            for (int trial = 0; n && trial < 4; trial++) {  // one bad element, sometimes another behind it
                static const float worst[] = {NAN, -NAN, INFINITY, -INFINITY};
                const size_t first = random_word() % n, second = first + random_word() % (n - first);
                const float kept[2] = {x[first], x[second]};
                x[second] = worst[(trial + 1) % 4];
                x[first] = worst[trial];
                bad = scalar_bad = n;
                expect(terse_codec_encode(codec, wire, bytes, x, n, &options, &bad) == TERSE_CODEC_NOT_FINITE && bad == first, name, by, n, "index of the first bad element");
                expect(terse_codec_encode(scalar, expected, bytes, x, n, &options, &scalar_bad) == TERSE_CODEC_NOT_FINITE && scalar_bad == first, name, by, n, "scalar's index of the first bad element");
                x[second] = kept[1];
                x[first] = kept[0];
            }

            // What not every codec can write: a fraction, one beyond the levels of 2 to 8 bits, the largest of all.
            // In long vectors each of them with one kind of numbers.
            for (int trial = 0; n && trial < 8; trial++) {
                if (n > 4000 && trial % 3 != kind) continue;
                static const float odd[] = {0.5f, -0.25f, 2.0f, -128.0f, 1.5f, -127.5f, 0x1.fffffep127f, -0x1.fffffep127f};
                const size_t at = random_word() % n;
                const float kept = x[at];
                x[at] = odd[trial];
                bad = scalar_bad = n;
                for (int side = 0; side < 2; side++) memset(wire_room[side], SENTINEL, near);
                const terse_codec_status status = terse_codec_encode(codec, wire, bytes, x, n, &options, &bad);
                expect(status == terse_codec_encode(scalar, expected, bytes, x, n, &options, &scalar_bad) && bad == scalar_bad, name, by, n, "what does not fit");
                expect(status != TERSE_CODEC_OK || !memcmp(wire_room[0], wire_room[1], near), name, by, n, "wire bytes beside an odd number");
                x[at] = kept;
            }
        }
    }
}

// Calls that every codec refuses.
static void check_refusals(const terse_codec *codec, const configuration *c) {
    const char *name = codec->name, *by = codec->implementation;
    enum { N = 128 };
    terse_codec_options good = TERSE_CODEC_OPTIONS, o;
    c->fill(&good, N);
    size_t bytes = 0;
    float *x = x_room;
    uint8_t *wire = wire_room[0];
    for (size_t i = 0; i < N; i++) x[i] = 1.0f;
    expect(terse_codec_wire_bytes(codec, N, &good, &bytes) == TERSE_CODEC_OK, name, by, N, "good options");
#define REFUSES(status, call, what) expect((call) == (status), name, by, N, what)
    REFUSES(TERSE_CODEC_BAD_LENGTH, terse_codec_encode(codec, wire, bytes + 1, x, N, &good, NULL), "a wire too long");
    REFUSES(TERSE_CODEC_BAD_LENGTH, terse_codec_decode_add(codec, x, N, wire, bytes - 1, &good), "a wire too short");
    REFUSES(TERSE_CODEC_OVERLAP, terse_codec_encode(codec, (uint8_t *)x + 4, bytes, x, N, &good, NULL), "a wire inside the floats");
    REFUSES(TERSE_CODEC_OVERLAP, terse_codec_decode_add(codec, x, N, (uint8_t *)(x + N) - 1, bytes, &good), "a wire that begins in the last float");
    REFUSES(TERSE_CODEC_OVERLAP, terse_codec_encode_with_feedback(codec, wire, bytes, x, x + 1, N, &good, NULL), "an error inside the floats");
    if (codec->takes & TERSE_TAKES_HOLD) {
        o = good, o.hold = (const uint8_t *)(x + N) - 1;
        REFUSES(TERSE_CODEC_OVERLAP, terse_codec_decode_add(codec, x, N, wire, bytes, &o), "a mask in the sums");
        REFUSES(TERSE_CODEC_OVERLAP, terse_codec_encode_with_feedback(codec, wire, bytes, x + N, x, N, &o, NULL), "a mask in the error");
        o.hold = wire + bytes - 1;
        REFUSES(TERSE_CODEC_OVERLAP, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "a mask in the wire");
    }
    REFUSES(TERSE_CODEC_MISALIGNED, terse_codec_encode_with_feedback(codec, wire, bytes, (float *)((uint8_t *)(x + N) + 1), x, N, &good, NULL), "floats beside a float");
    REFUSES(TERSE_CODEC_MISALIGNED, terse_codec_decode_add(codec, (float *)((uint8_t *)x + 1), N, wire, bytes, &good), "sums beside a float");
    REFUSES(TERSE_CODEC_MISALIGNED, terse_codec_encode(codec, wire, bytes, (float *)((uint8_t *)x + 2), N, &good, NULL), "floats at half a float");
    o = good, o.size--;
    REFUSES(TERSE_CODEC_BAD_ABI, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "options of another version");
    o = good, o.scale = INFINITY;
    REFUSES(TERSE_CODEC_BAD_SCALE, terse_codec_decode_add(codec, x, N, wire, bytes, &o), "an infinite scale");
    if (codec->takes & TERSE_TAKES_ZERO) {
        o = good, o.zero = TERSE_ZERO_UNSET;
        REFUSES(TERSE_CODEC_BAD_ZERO, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "a zero that is not set");
    }
    if (codec->takes & TERSE_TAKES_RANDOM) {
        o = good, o.index = 32;
        REFUSES(TERSE_CODEC_BAD_INDEX, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "an index of half a word");
    }
    if (codec->takes & TERSE_TAKES_SEGMENTS) {
        o = good, o.block = 0, by_segments(&o, N), segments_room[3]--;
        REFUSES(TERSE_CODEC_BAD_SCALE_GROUPS, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "segments that end early");
        by_segments(&o, N), o.block = 7;
        REFUSES(TERSE_CODEC_BAD_SCALE_GROUPS, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "segments and blocks");
    }
    if (codec->takes & TERSE_TAKES_FIELDS) {
        // Fields of 8 bits hold the sum of so many ranks, and of no more.
        const uint32_t bits = codec->takes & TERSE_TAKES_BITS ? 4 : 0, levels = bits ? 15 : 1;
        o = good, o.block = 0, o.segments = NULL, o.segment_count = 0, o.units = NULL, o.bits = bits, o.side = 0, o.levels = TERSE_LEVELS_UNIFORM;
        o.unscaled = codec->takes & TERSE_TAKES_UNSCALED ? 1 : 0, o.width = 8, o.ranks = 255 / levels;
        size_t room = 0;
        REFUSES(TERSE_CODEC_OK, terse_codec_wire_bytes(codec, N, &o, &room), "as many ranks as a field holds");
        o.ranks++;
        REFUSES(TERSE_CODEC_TOO_MANY_RANKS, terse_codec_encode(codec, wire, room, x, N, &o, NULL), "a rank too many for the field");
        REFUSES(TERSE_CODEC_TOO_MANY_RANKS, terse_codec_decode_add(codec, x, N, wire, room, &o), "the sum of a rank too many");
        if (codec->takes & TERSE_TAKES_SIDE) {
            o.side = 7, o.ranks = 18;  // 18 * 14 = 252
            REFUSES(TERSE_CODEC_OK, terse_codec_wire_bytes(codec, N, &o, &room), "as many ranks of 7 levels a side as a field holds");
            o.ranks++;
            REFUSES(TERSE_CODEC_TOO_MANY_RANKS, terse_codec_wire_bytes(codec, N, &o, &room), "a rank of 7 levels a side too many");
            o.side = 8;
            REFUSES(TERSE_CODEC_BAD_CHOICE, terse_codec_wire_bytes(codec, N, &o, &room), "more levels a side than bits hold");
        }
    }
    if (codec->takes & TERSE_TAKES_K) {
        o = good, o.k = 0;
        REFUSES(TERSE_CODEC_BAD_K, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "k of 0");
        o.k = (size_t)1 << 40;
        REFUSES(TERSE_CODEC_BAD_K, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "k beyond all there is");
    }
    if (codec->takes & TERSE_TAKES_DIMENSIONS) {
        static const struct { uint32_t dimensions; size_t block; terse_codec_status status; } wrong[] = {
            {1, 0, TERSE_CODEC_BAD_CHOICE}, {0, 4097, TERSE_CODEC_BAD_CHOICE}, {2, 129, TERSE_CODEC_BAD_CHOICE}, {3, 8, TERSE_CODEC_BAD_CHOICE}, {2, 9, TERSE_CODEC_BAD_SCALE_GROUPS},
        };
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            o = good, o.k = 1, o.dimensions = wrong[w].dimensions, o.block = wrong[w].block;
            REFUSES(wrong[w].status, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "chunks that there are not");
        }
    }
    if (codec->takes & TERSE_TAKES_UNSCALED) {
        const float unit = 1.0f, negative = -1.0f, too_large = 0x1p127f;
        o = good, o.block = 0, o.segments = NULL, o.segment_count = 0, o.levels = TERSE_LEVELS_UNIFORM;
        o.unscaled = 1, o.units = &unit, o.unit_count = 1;
        size_t needed = 0;
        REFUSES(TERSE_CODEC_OK, terse_codec_wire_bytes(codec, N, &o, &needed), "a unit");
        o.unit_count = 2;
        REFUSES(TERSE_CODEC_BAD_SCALE_GROUPS, terse_codec_encode(codec, wire, needed, x, N, &o, NULL), "more units than scale groups");
        o.unit_count = 1, o.units = &negative;
        REFUSES(TERSE_CODEC_BAD_SCALE, terse_codec_encode(codec, wire, needed, x, N, &o, NULL), "a negative unit");
        o.units = &too_large;
        REFUSES(TERSE_CODEC_BAD_SCALE, terse_codec_decode_add(codec, x, N, wire, needed, &o), "a unit too large");
        o.units = &unit, o.unscaled = 0, o.ranks = 0;
        REFUSES(TERSE_CODEC_BAD_CHOICE, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "units beside scales");
    }
    if (codec->scales) {
        float scales[N];
        o = good, o.block = 0, o.segments = NULL, o.segment_count = 0, o.units = NULL;
        REFUSES(TERSE_CODEC_BAD_LENGTH, terse_codec_scales(codec, scales, 2, x, N, &o, NULL), "scales for more scale groups than there are");
        x[77] = NAN;
        size_t first = 0;
        REFUSES(TERSE_CODEC_NOT_FINITE, terse_codec_scales(codec, scales, 1, x, N, &o, &first), "NaN, in scales");
        expect(first == 77, name, by, N, "the first NaN, in scales");
        x[77] = 1.0f;
    } else {
        REFUSES(TERSE_CODEC_NOT_TAKEN, terse_codec_scales(codec, x, 0, x, N, &good, NULL), "scales of a codec that has none");
    }
#define NOT_TAKEN(flag, member, value)                                                                                     \
    if (!(codec->takes & (flag))) {                                                                                        \
        o = good, o.member = (value);                                                                                      \
        REFUSES(TERSE_CODEC_NOT_TAKEN, terse_codec_encode(codec, wire, bytes, x, N, &o, NULL), "an option it does not take"); \
    }
    NOT_TAKEN(TERSE_TAKES_HOLD, hold, hold_room)
    NOT_TAKEN(TERSE_TAKES_BLOCK, block, 64)
    NOT_TAKEN(TERSE_TAKES_SEGMENTS, segments, segments_room)
    NOT_TAKEN(TERSE_TAKES_BITS, bits, 4)
    NOT_TAKEN(TERSE_TAKES_FIELDS, width, 8)
    NOT_TAKEN(TERSE_TAKES_FIELDS, ranks, 2)
    NOT_TAKEN(TERSE_TAKES_UNSCALED, unscaled, 1)
    NOT_TAKEN(TERSE_TAKES_LEVELS, levels, TERSE_LEVELS_LOGARITHMIC)
    NOT_TAKEN(TERSE_TAKES_DIMENSIONS, dimensions, 2)
    NOT_TAKEN(TERSE_TAKES_K, k, 1)
    NOT_TAKEN(TERSE_TAKES_CLIP, clip, 2.5f)
}

enum { MANY = 1024 };
enum { BITS = MAX / 8 + 80 };
static uint8_t vote_room[MANY][BITS], plane_room[2][16][BITS + 2 * MARGIN];

static void check_vote(const terse_vote *vote, const terse_vote *scalar) {
    static const size_t ranks_list[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 100, 255, 256, 511, 513, 1023, 1024};
    const uint8_t *votes[MANY];
    for (size_t r = 0; r < sizeof ranks_list / sizeof *ranks_list; r++) {
        const size_t ranks = ranks_list[r];
        for (size_t l = 0; l < length_count; l += ranks > 17 && l < 60 ? 7 : 1) {
            const size_t n = lengths[l], shift = random_word() % 32;
            for (size_t v = 0; v < ranks; v++) {
                votes[v] = vote_room[v] + (shift + 3 * v) % 32;
                random_bytes(vote_room[v], BITS);
                // The random votes of many ranks nearly tie, so few elements reach the ends of the count. Hence some ranks agree.
                if (v && random_word() % 3 == 0) memcpy((uint8_t *)votes[v], votes[v - 1], BITS - 64);
            }
            const int some_absent = random_word() % 2;
            for (size_t v = 1; v < ranks && some_absent; v++)
                if (random_word() % 4 == 0) votes[v] = NULL;
            for (int kind = 0; kind < 4; kind++) {
                memset(plane_room, SENTINEL, sizeof plane_room);
                uint8_t *out[2][16];
                for (int side = 0; side < 2; side++)
                    for (int k = 0; k < 16; k++) out[side][k] = plane_room[side][k] + shift;
                const char *what[] = {"majority, ties minus", "majority, ties plus", "majority or zero", "tally"};
                for (int side = 0; side < 2; side++) {
                    const terse_vote *by = side ? scalar : vote;
                    if (kind < 2) by->majority(out[side][0], votes, ranks, n, kind ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS);
                    else if (kind == 2) by->majority_or_zero(out[side][0], out[side][1], votes, ranks, n);
                    else by->tally(out[side], votes, ranks, n);
                }
                expect(!memcmp(plane_room[0], plane_room[1], sizeof *plane_room), "vote", vote->implementation, n, what[kind]);
            }
        }
    }
    memset(votes, 0, sizeof votes);
    memset(plane_room, SENTINEL, sizeof plane_room);
    uint8_t *planes[16];
    for (int k = 0; k < 16; k++) planes[k] = plane_room[0][k];
    const int refused = vote->majority(planes[0], votes, MANY, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS && vote->majority_or_zero(planes[0], planes[1], votes, MANY, 8) == TERSE_CODEC_BAD_RANKS && vote->tally(planes, votes, MANY, 8) == TERSE_CODEC_BAD_RANKS;
    expect(refused && !memcmp(plane_room[0], plane_room[1], sizeof *plane_room), "vote", vote->implementation, 8, "all absent is refused, and nothing written");
    uint8_t *room = plane_room[0][0];
    const uint8_t *two[] = {room + 8, room + 40};
    uint8_t *beside[] = {room, room + 24}, *across[] = {room, room + 1};
    int overlaps = vote->majority(room + 9, two, 2, 64, TERSE_ZERO_PLUS) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->majority(room + 33, two, 2, 64, TERSE_ZERO_PLUS) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->majority_or_zero(room, room + 47, two, 2, 64) == TERSE_CODEC_OVERLAP && vote->majority_or_zero(room + 7, room + 24, two, 2, 64) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->majority_or_zero(room + 24, room + 31, two, 2, 64) == TERSE_CODEC_OVERLAP && vote->tally(across, two, 2, 64) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->tally((uint8_t *[]){room, room + 15}, two, 2, 64) == TERSE_CODEC_OVERLAP;
    expect(overlaps && !memcmp(plane_room[0], plane_room[1], sizeof *plane_room), "vote", vote->implementation, 64, "a result across a vote or another result is refused, and nothing written");
    expect(vote->tally(beside, two, 2, 64) == TERSE_CODEC_OK && vote->majority(room + 8, two, 2, 64, TERSE_ZERO_PLUS) == TERSE_CODEC_OK, "vote", vote->implementation, 64, "results between votes, and in place of one");
    expect(vote->majority(plane_room[0][0], votes, 0, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS, "vote", vote->implementation, 8, "0 ranks are refused");
    expect(vote->majority(plane_room[0][0], votes, MANY + 1, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS, "vote", vote->implementation, 8, "1025 ranks are refused");
}

static const struct {
    const char *implementation;
    const terse_reductions *reductions;
} reductions_list[] = {
#if defined(__x86_64__)
    {"avx512", &terse_reductions_avx512}, {"avx2", &terse_reductions_avx2},
#elif defined(__aarch64__)
    {"neon", &terse_reductions_neon},
#endif
    {"scalar", &terse_reductions_scalar},
};

static int runs_here(const char *implementation) {
    const char *at;
    for (size_t i = 0; (at = terse_implementation_at(i)); i++)
        if (!strcmp(at, implementation)) return 1;
    return 0;
}

enum { REDUCED = 9 * TERSE_REDUCTION_CHUNK };
static float reduced_room[REDUCED + MARGIN];
static uint8_t signs_room[2][REDUCED / 8 + MARGIN];

// Nearby magnitudes, so that another order of adding shows in the last bits.
static float near_one(void) {
    const uint64_t r = random_word();
    return (r & 1 ? 1.0f : -1.0f) * (1.0f + (float)(r >> 40) * 0x1p-24f) * (r & 2 ? 1.0f : 0x1p-20f);
}

// The bits of a NaN sum are not specified, so all NaN are equal here.
static int same_double(double a, double b) { return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof a); }

static void check_reductions(const terse_reductions *m, const char *by) {
    const terse_reductions *s = &terse_reductions_scalar;
    const size_t chunk = TERSE_REDUCTION_CHUNK;
    static const float special[] = {NAN, -NAN, INFINITY, -INFINITY};
    // Around one chunk, around the four that are walked side by side, and beyond twice as many.
    const size_t more[] = {chunk - 1, chunk, chunk + 1, chunk + 17, 2 * chunk, 4 * chunk - 1, 4 * chunk, 4 * chunk + 1, 5 * chunk + 70, 8 * chunk + 31};
    for (size_t l = 0; l < length_count + sizeof more / sizeof *more; l++) {
        const size_t n = l < length_count ? lengths[l] : more[l - length_count];
        for (int kind = 0; kind < 3 + 4; kind++) {
            float *x = reduced_room + random_word() % MARGIN;
            for (size_t i = 0; i < n; i++) x[i] = kind == 1 ? random_float() : kind == 2 ? -0.0f : near_one();
            if (kind > 2 && n) x[random_word() % n] = special[kind - 3];
            expect(same_double(m->sum_of_magnitudes(x, n), s->sum_of_magnitudes(x, n)), "reductions", by, n, "sum of magnitudes");
            expect(same_double(m->sum_of_squares(x, n), s->sum_of_squares(x, n)), "reductions", by, n, "sum of squares");
            terse_codec_options o = TERSE_CODEC_OPTIONS;
            o.zero = random_word() % 2 ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS;
            memset(signs_room, SENTINEL, sizeof signs_room);
            expect(same_double(m->sum_of_squares_and_signs(signs_room[0], x, n, o.zero == TERSE_ZERO_PLUS), s->sum_of_squares(x, n)), "reductions", by, n, "sum of squares, with signs");
            const int written = kind > 2 || terse_sign_scalar.encode(signs_room[1], x, n, &o, 0, n) == n;
            expect(written && (kind > 2 || !memcmp(signs_room[0], signs_room[1], sizeof *signs_room)), "reductions", by, n, "signs, or bytes behind them");
            const float mine = m->largest(x, n), expected = s->largest(x, n);
            expect(!memcmp(&mine, &expected, sizeof mine), "reductions", by, n, "largest");
        }
    }
}

static const struct {
    const char *implementation;
    const terse_l1_kernel *kernel;
} l1_kernels[] = {
#if defined(__x86_64__)
    {"avx512", &terse_l1_kernel_avx512}, {"avx2", &terse_l1_kernel_avx2},
#endif
    {NULL, NULL},
};

enum { LONG = TERSE_L1_LONG + 3 * TERSE_REDUCTION_CHUNK + 4321 };
static float long_room[LONG + MARGIN];
static uint8_t long_wires[2][LONG + 16];

static float any_float(void) { return with_a_norm(); }
static float tiny(void) { return (float)(random_word() % 200) * 0x1p-149f; }
static float one(void) { return random_word() % 2 ? 1.0f : -1.0f; }
static float spike(void) { return random_word() % 300 ? 0.0f : 1000.0f; }
static float nothing(void) { return 0.0f; }

// A group that is read once: the sums of its chunks, and what is written of the decided, whichever factor it is in the end.
static void check_group(const terse_l1_kernel *kernel, const char *by) {
    static float (*const numbers[])(void) = {gradient, near_one, any_float, random_float, tiny, one, spike};
    static terse_l1_undecided undecided[TERSE_L1_UNDECIDED];
    static uint8_t is_undecided[TERSE_L1_GROUP];
    for (unsigned bits = 2; bits <= 8; bits += (unsigned)stride)
        for (int kind = 0; kind < 8; kind++)
            for (int wide = 0; wide < 2; wide++) {
                const unsigned width = !wide ? bits : bits <= 4 && random_word() % 2 ? 4 : random_word() % 2 ? 8 : 16, s = (1u << (bits - 1)) - 1;
                float *x = long_room + random_word() % MARGIN;
                uint8_t *fields = long_wires[0] + 1 + random_word() % 15;
                const double off = ldexp(1, -17 + (int)(random_word() % 14));
                for (size_t i = 0; i < TERSE_L1_GROUP; i++) x[i] = numbers[kind % 7]();
                const double mean = terse_reductions_scalar.sum_of_magnitudes(x, TERSE_L1_GROUP) / TERSE_L1_GROUP;
                const double factor = kind == 3 || kind == 4 ? ldexp(1, (int)(random_word() % 180) - 90) : s / (2 * mean);
                if (kind == 7)  // on the edges between levels, and beside them
                    for (size_t i = 0; i < TERSE_L1_GROUP; i++) x[i] = (float)(((double)(random_word() % (2 * s + 2)) - s - 0.5) / factor * (1 + ((double)(random_word() % 7) - 3) * 0x1p-24));
                const terse_l1_guess guess = {width, s, (float)(factor * (1 - off)), (float)factor, (float)(factor * (1 + off))};
                memset(long_wires[0], SENTINEL, sizeof *long_wires);
                double sums[4];
                const size_t count = kernel->read_group(sums, fields, undecided, x, &guess), bytes = TERSE_L1_GROUP / 8 * width;
                for (size_t c = 0; c < 4; c++) expect(same_double(sums[c], terse_reductions_scalar.sum_of_magnitudes(x + c * TERSE_REDUCTION_CHUNK, TERSE_REDUCTION_CHUNK)), "l1", by, c, "the sum of a chunk");
                expect(fields[-1] == SENTINEL && fields[bytes] == SENTINEL, "l1", by, bits, "nothing is written beside a group");
                expect(count <= TERSE_L1_UNDECIDED || off * s > 1.0 / 64 || kind, "l1", by, bits, "few are undecided");
                if (count > TERSE_L1_UNDECIDED) continue;
                memset(is_undecided, 0, sizeof is_undecided);
                int listed = 1;
                for (size_t u = 0; u < count; u++) listed &= !is_undecided[undecided[u].at]++ && !memcmp(&undecided[u].x, x + undecided[u].at, 4);
                expect(listed, "l1", by, bits, "the undecided, each once");
                const double by_factor[] = {guess.low * (1 + 0x1p-19), factor, guess.high * (1 - 0x1p-19)};
                for (int f = 0; f < 3; f++) {
                    size_t wrong = 0;
                    for (size_t i = 0; i < TERSE_L1_GROUP; i++) wrong += !is_undecided[i] && terse_field(fields, i, width) != terse_l1_field(x[i], s, by_factor[f]);
                    expect(!wrong, "l1", by, bits, "what is decided is so by every factor");
                }
            }
}

static void check_long(const terse_codec *codec, const terse_codec *scalar, const char *how, uint32_t bits, int unscaled) {
    terse_codec_options o = TERSE_CODEC_OPTIONS;
    o.bits = bits, o.unscaled = (uint32_t)unscaled, o.width = unscaled ? 8 : 0;
    const float *x = long_room + 1;
    size_t bytes = 0, bad = 0, scalar_bad = 0;
    terse_codec_wire_bytes(codec, LONG, &o, &bytes);
    memset(long_wires, SENTINEL, sizeof long_wires);
    terse_walk_use(0, 1);  // a walk that measures both orders
    const terse_codec_status status = terse_codec_encode(codec, long_wires[0], bytes, x, LONG, &o, &bad);
    expect(terse_codec_encode(scalar, long_wires[1], bytes, x, LONG, &o, &scalar_bad) == status && bad == scalar_bad, "l1", codec->implementation, LONG, how);
    expect(status != TERSE_CODEC_OK || !memcmp(long_wires[0], long_wires[1], sizeof *long_wires), "l1", codec->implementation, LONG, how);
}

// Vectors so long that they are read once, and samples of them that mislead.
static void check_one_pass(const terse_codec *codec, const terse_codec *scalar) {
    static const struct { const char *how; float (*number)(void); } kinds[] = {
        {"long: as gradients", gradient}, {"long: near one", near_one}, {"long: any", any_float}, {"long: ones", one},
        {"long: spikes", spike}, {"long: tiny", tiny}, {"long: nothing", nothing},
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

    // Some groups on the edges between levels, where more are undecided than there is room for.
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

    // What is sampled is smaller than the rest, by so much that more than a few levels change.
    for (size_t i = 0; i < LONG; i++) x[i] = near_one();
    for (size_t i = 0; i < LONG / stretch; i++)
        for (size_t e = 0; e < TERSE_L1_SAMPLE; e++) x[terse_l1_sampled(stretch, i) + e] *= 0.9f;
    check_long(codec, scalar, "long: the sample misleads", 4, 0);
    for (size_t i = 0; i < LONG / stretch; i++) memset(x + terse_l1_sampled(stretch, i), 0, TERSE_L1_SAMPLE * sizeof *x);
    check_long(codec, scalar, "long: nothing in the sample", 4, 1);
    x[LONG / 2] = NAN, x[LONG - 3] = INFINITY;
    check_long(codec, scalar, "long: NaN", 4, 0);
    for (size_t i = 0; i < LONG; i++) x[i] = one();
    x[LONG - 1] = -INFINITY;
    check_long(codec, scalar, "long: infinity behind the groups", 4, 1);
    x[LONG - 1] = 1;
    terse_codecs_use_threads(1);
    for (size_t i = 0; i < LONG; i++) x[i] = i % 1000 < 997 ? 3e38f : -3e38f;
    check_long(codec, scalar, "long: beyond fp32", 4, 0);
}

static int by_magnitude(const void *a, const void *b) {
    const uint32_t left = terse_magnitude_bits(a), right = terse_magnitude_bits(b);
    return left < right ? 1 : left > right ? -1 : 0;
}

static float one_of_three(void) { return (float)(random_word() % 3) - 1.0f; }
static float seldom(void) { return random_word() % 4000 ? 0.0f : near_one(); }

// Long vectors, of which copies of what may be chosen are made, on one thread and on several: what sorting chooses.
static void check_top_k(const terse_codec *codec) {
    enum { N = (1 << 19) + 4321 };
    static const struct { const char *how; float (*number)(void); } kinds[] = {
        {"top-k: as gradients", gradient}, {"top-k: any", random_float}, {"top-k: near one", near_one}, {"top-k: ties", one},
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

// Vectorised words of 64 elements: compiled apart, with their instructions.
void terse_check_words_avx2(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);
void terse_check_words_avx512(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);
void terse_check_words_neon(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);

static const struct {
    const char *implementation;
    void (*words)(uint64_t seed, uint64_t step, uint64_t i, uint32_t words[64]);
} words_list[] = {
#if defined(__x86_64__)
    {"avx512", terse_check_words_avx512}, {"avx2", terse_check_words_avx2},
#elif defined(__aarch64__)
    {"neon", terse_check_words_neon},
#endif
    {"scalar", NULL},
};

// The authors' known answers: Random123, tests/kat_vectors, philox4x32 10.
static void check_philox(void) {
    static const struct { uint64_t counter[2], key; uint32_t answer[4]; } known[] = {
        {{0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0ull, ~0ull}, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x85a308d3243f6a88, 0x0370734413198a2e}, 0x299f31d0a4093822, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const terse_philox_block block = terse_philox(known[i].counter[0], known[i].counter[1], known[i].key);
        expect(!memcmp(block.word, known[i].answer, sizeof block.word), "philox", "scalar", i, "the authors' known answer");
    }
}

static void check_words(void (*words)(uint64_t, uint64_t, uint64_t, uint32_t[64]), const char *by) {
    for (int trial = 0; trial < 2000; trial++) {
        // Counters whose low word is about to carry, too.
        const uint64_t seed = random_word(), step = random_word(), i = (trial % 3 ? random_word() : (random_word() << 34) - 64) / 64 * 64;
        uint32_t mine[64];
        words(seed, step, i, mine);
        for (uint64_t e = 0; e < 64; e++)
            expect(mine[e] == terse_random_word(seed, step, i + e), "random words", by, e, "the word of an element");
    }
}

static void check_finding(void) {
    const terse_codec *codec = NULL;
    const terse_vote *vote = NULL;
    expect(terse_codec_find(&codec, "sing", NULL) == TERSE_CODEC_UNKNOWN && !codec, "sing", "", 0, "a codec that there is not");
    expect(terse_codec_find(&codec, "sign", "sse9") == TERSE_CODEC_UNAVAILABLE && !codec, "sign", "sse9", 0, "an implementation that there is not");
    expect(terse_vote_find(&vote, "sse9") == TERSE_CODEC_UNAVAILABLE && !vote, "vote", "sse9", 0, "an implementation that there is not");
    for (int status = -1; status < 100; status++) expect(strlen(terse_codec_sentence((terse_codec_status)status)) > 8, "status", "", (size_t)status, "a sentence");
}

static const char *only;  // the implementation that is asked for; NULL: all
static int asked_for(const char *implementation) { return !only || !strcmp(only, implementation); }

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "--vectors")) return terse_check_vectors(stdin, &terse_golden_here) != 0;
    const int few = count > 1 && !strcmp(arguments[1], "--few-lengths");
    only = count > 1 + few ? arguments[1 + few] : NULL;
    (few ? list_few_lengths : list_lengths)();
    check_finding();
    const terse_codec *codec, *scalar_codec;
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        if (!asked_for(codec->implementation)) continue;
        const long before = checks;
        if (terse_codec_find(&scalar_codec, codec->name, "scalar") != TERSE_CODEC_OK) return printf("%s has no scalar implementation\n", codec->name), 1;
        const configuration by_itself = {codec->name, what_it_takes, gradient, 1};
        taken = codec->takes;
        size_t configured = 0;
        for (size_t c = 0; c < sizeof configurations / sizeof *configurations; c++)
            if (!strcmp(configurations[c].codec, codec->name)) {
                check_codec(codec, scalar_codec, &configurations[c]);
                check_refusals(codec, &configurations[c]);
                configured++;
            }
        if (!strcmp(codec->name, "top-k")) check_top_k(codec);
        if (!configured) check_codec(codec, scalar_codec, &by_itself), check_refusals(codec, &by_itself);
        printf("%s %s %ld checks\n", codec->name, codec->implementation, checks - before);
    }
    const terse_vote *vote, *scalar_vote;
    if (terse_vote_find(&scalar_vote, "scalar") != TERSE_CODEC_OK) return printf("vote has no scalar implementation\n"), 1;
    for (size_t i = 0; (vote = terse_vote_at(i)); i++) {
        if (!asked_for(vote->implementation)) continue;
        const long before = checks;
        check_vote(vote, scalar_vote);
        printf("vote %s %ld checks\n", vote->implementation, checks - before);
    }
    for (size_t i = 0; i < sizeof reductions_list / sizeof *reductions_list; i++) {
        if (!runs_here(reductions_list[i].implementation) || !asked_for(reductions_list[i].implementation)) continue;
        const long before = checks;
        check_reductions(reductions_list[i].reductions, reductions_list[i].implementation);
        printf("reductions by %s: %ld checks\n", reductions_list[i].implementation, checks - before);
    }
    for (size_t i = 0; l1_kernels[i].kernel; i++) {
        const char *by = l1_kernels[i].implementation;
        if (!runs_here(by) || !asked_for(by)) continue;
        const long before = checks;
        check_group(l1_kernels[i].kernel, by);
        if (terse_codec_find(&codec, "l1", by) == TERSE_CODEC_OK && terse_codec_find(&scalar_codec, "l1", "scalar") == TERSE_CODEC_OK) check_one_pass(codec, scalar_codec);
        printf("l1 in one pass by %s: %ld checks\n", by, checks - before);
    }
    check_philox();
    for (size_t i = 0; i < sizeof words_list / sizeof *words_list; i++) {
        if (!words_list[i].words || !runs_here(words_list[i].implementation) || !asked_for(words_list[i].implementation)) continue;
        const long before = checks;
        check_words(words_list[i].words, words_list[i].implementation);
        printf("random words by %s: %ld checks\n", words_list[i].implementation, checks - before);
    }
    printf("%ld checks, %ld bad\n", checks, bad);
    return bad != 0;
}
