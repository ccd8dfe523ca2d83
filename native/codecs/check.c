// Every implementation of every codec, and of the vote, against its scalar one: same bytes, same sums, same first bad lane,
// nothing outside the arrays touched, whatever the length and the alignment. Exit status 1 if anything differs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "terse/codecs.h"

enum { MAX = 8400, WIRE = MAX / 8 + 80, SENTINEL = 0xA5, MARGIN = 40 };

static long checks, bad;

static uint64_t random_state = 0x9E3779B97F4A7C15u;
static uint64_t random_word(void) {  // splitmix64
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void random_bytes(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)random_word();
}

// Any finite float, with zeros of both signs, denormals and the largest ones more often than chance has them.
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

static void expect(int good, const char *what, const char *implementation, size_t n, const char *how) {
    checks++;
    if (good) return;
    if (bad++ < 20) printf("%s %s differs from scalar at n = %zu: %s\n", what, implementation, n, how);
}

// Lengths 0..70, around multiples of 64, primes, and around the groups of pages and blocks that kernels walk.
static size_t lengths[128], length_count;
static void list_lengths(void) {
    for (size_t n = 0; n <= 70; n++) lengths[length_count++] = n;
    static const size_t more[] = {127, 128, 129, 191, 192, 193, 255, 256, 257, 1021, 4095, 4096, 4097, 4160, 4199, 5003, 8191, 8192, 8265};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) lengths[length_count++] = more[i];
}

static float x_room[MAX + 2 * MARGIN], sum_room[2][MAX + 2 * MARGIN];
static uint8_t wire_room[2][WIRE + 2 * MARGIN], hold_room[WIRE];

static void check_codec(const terse_codec *codec, const terse_codec *scalar) {
    const char *name = codec->name, *by = codec->implementation;
    for (size_t l = 0; l < length_count; l++) {
        const size_t n = lengths[l];
        for (int kind = 0; kind < 8; kind++) {
            // Odd starts: the wire at any byte, the floats at any float.
            const size_t shift = random_word() % 32;
            float *x = x_room + shift;
            uint8_t *wire = wire_room[0] + shift, *expected = wire_room[1] + shift;
            for (size_t i = 0; i < n; i++) x[i] = kind / 4 ? random_float() : kind % 2 ? 0.0f : -0.0f;
            random_bytes(hold_room, sizeof hold_room);
            const terse_codec_options options = {kind % 2 ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS, kind % 4 < 2 ? NULL : hold_room + shift % 7, kind % 4 == 1 ? 1.0f : 0.3f};
            expect(codec->wire_bytes(n) == scalar->wire_bytes(n), name, by, n, "bytes for n floats");

            memset(wire_room, SENTINEL, sizeof wire_room);
            const size_t accepted = codec->encode(wire, x, n, &options);
            expect(accepted == scalar->encode(expected, x, n, &options) && accepted == n, name, by, n, "accepted elements");
            expect(!memcmp(wire_room[0], wire_room[1], sizeof *wire_room), name, by, n, "wire bytes, or bytes outside the wire");

            for (size_t i = 0; i < MAX + 2 * MARGIN; i++) sum_room[0][i] = sum_room[1][i] = random_float() * 0.25f;
            random_bytes(wire, codec->wire_bytes(n));  // any byte may arrive
            codec->decode_add(sum_room[0] + shift, wire, n, &options);
            scalar->decode_add(sum_room[1] + shift, wire, n, &options);
            expect(!memcmp(sum_room[0], sum_room[1], sizeof *sum_room), name, by, n, "decoded sums, or floats outside them");

            for (int trial = 0; n && trial < 4; trial++) {  // one bad lane, sometimes another behind it
                static const float worst[] = {NAN, -NAN, INFINITY, -INFINITY};
                const size_t first = random_word() % n, second = first + random_word() % (n - first);
                const float kept[2] = {x[first], x[second]};
                x[second] = worst[(trial + 1) % 4];
                x[first] = worst[trial];
                expect(codec->encode(wire, x, n, &options) == first && scalar->encode(expected, x, n, &options) == first, name, by, n, "index of the first bad element");
                x[second] = kept[1];
                x[first] = kept[0];
            }
        }
    }
}

enum { MANY = 1024 };
static uint8_t vote_room[MANY][WIRE], plane_room[2][16][WIRE + 2 * MARGIN];

static void check_vote(const terse_vote *vote, const terse_vote *scalar) {
    static const size_t ranks_list[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 100, 255, 256, 511, 513, 1023, 1024};
    const uint8_t *votes[MANY];
    for (size_t r = 0; r < sizeof ranks_list / sizeof *ranks_list; r++) {
        const size_t ranks = ranks_list[r];
        for (size_t l = 0; l < length_count; l += ranks > 17 && l < 60 ? 7 : 1) {
            const size_t n = lengths[l], shift = random_word() % 32;
            for (size_t v = 0; v < ranks; v++) {
                votes[v] = vote_room[v] + (shift + 3 * v) % 32;
                random_bytes(vote_room[v], WIRE);
                // Many ranks all but tie on their own; few lanes then reach the ends of the count. So let some agree.
                if (v && random_word() % 3 == 0) memcpy((uint8_t *)votes[v], votes[v - 1], WIRE - 64);
            }
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
    expect(vote->majority(plane_room[0][0], votes, 0, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS, "vote", vote->implementation, 8, "0 ranks are refused");
    expect(vote->majority(plane_room[0][0], votes, MANY + 1, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS, "vote", vote->implementation, 8, "1025 ranks are refused");
}

int main(void) {
    list_lengths();
    const terse_codec *codec, *scalar_codec;
    for (size_t i = 0; (codec = terse_codec_at(i)); i++) {
        const long before = checks;
        if (terse_codec_find(&scalar_codec, codec->name, "scalar") != TERSE_CODEC_OK) return printf("%s has no scalar implementation\n", codec->name), 1;
        check_codec(codec, scalar_codec);
        printf("%s %s %ld checks\n", codec->name, codec->implementation, checks - before);
    }
    const terse_vote *vote, *scalar_vote;
    if (terse_vote_find(&scalar_vote, "scalar") != TERSE_CODEC_OK) return printf("vote has no scalar implementation\n"), 1;
    for (size_t i = 0; (vote = terse_vote_at(i)); i++) {
        const long before = checks;
        check_vote(vote, scalar_vote);
        printf("vote %s %ld checks\n", vote->implementation, checks - before);
    }
    printf("%ld checks, %ld bad\n", checks, bad);
    return bad != 0;
}
