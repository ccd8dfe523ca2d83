// Compares the reductions with the scalar ones: the same bits, and the same signs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../codecs/sign/sign.h"
#include "check/check.h"
#include "reductions.h"

enum { MARGIN = 40 };
enum { REDUCED = 9 * TERSE_REDUCTION_CHUNK };
static float reduced_room[REDUCED + MARGIN];
static uint8_t signs_room[2][REDUCED / 8 + MARGIN];

static void check_reductions(const terse_reductions *m, const char *by) {
    const terse_reductions *s = &terse_reductions_scalar;
    const size_t chunk = TERSE_REDUCTION_CHUNK;
    static const float special[] = {NAN, -NAN, INFINITY, -INFINITY};
    // Lengths around one chunk, around the four that are walked side by side, and beyond eight.
    const size_t more[] = {chunk - 1,     chunk,     chunk + 1,     chunk + 17,     2 * chunk,
                           4 * chunk - 1, 4 * chunk, 4 * chunk + 1, 5 * chunk + 70, 8 * chunk + 31};
    for (size_t l = 0; l < length_count + sizeof more / sizeof *more; l++) {
        const size_t n = l < length_count ? lengths[l] : more[l - length_count];
        for (int kind = 0; kind < 3 + 4; kind++) {
            float *x = reduced_room + random_word() % MARGIN;
            for (size_t i = 0; i < n; i++) x[i] = kind == 1 ? any_float() : kind == 2 ? -0.0f : near_one();
            if (kind > 2 && n) x[random_word() % n] = special[kind - 3];
            expect(same_double(m->sum_of_magnitudes(x, n), s->sum_of_magnitudes(x, n)), "reductions", by, n,
                   "sum of magnitudes");
            expect(same_double(m->sum_of_squares(x, n), s->sum_of_squares(x, n)), "reductions", by, n,
                   "sum of squares");
            terse_codec_options o = TERSE_CODEC_OPTIONS;
            o.zero = random_word() % 2 ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS;
            memset(signs_room, SENTINEL, sizeof signs_room);
            expect(same_double(m->sum_of_squares_and_signs(signs_room[0], x, n, o.zero == TERSE_ZERO_PLUS),
                               s->sum_of_squares(x, n)),
                   "reductions", by, n, "sum of squares, with signs");
            const int written = kind > 2 || terse_sign_scalar.encode(signs_room[1], x, n, &o, 0, n) == n;
            expect(written && (kind > 2 || !memcmp(signs_room[0], signs_room[1], sizeof *signs_room)), "reductions", by,
                   n, "signs, or bytes behind them");
            const float mine = m->largest(x, n), expected = s->largest(x, n);
            expect(!memcmp(&mine, &expected, sizeof mine), "reductions", by, n, "largest");
        }
    }
}

void terse_check_reductions(void) {
    static const struct {
        const char *implementation;
        const terse_reductions *reductions;
    } all[] = {
#if defined(__x86_64__)
        {"avx512", &terse_reductions_avx512},
        {"avx2", &terse_reductions_avx2},
#elif defined(__aarch64__)
        {"neon", &terse_reductions_neon},
#endif
        {"scalar", &terse_reductions_scalar},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!asked_for(all[i].implementation)) continue;
        const long before = checks;
        check_reductions(all[i].reductions, all[i].implementation);
        printf("reductions by %s: %ld checks\n", all[i].implementation, checks - before);
    }
}
