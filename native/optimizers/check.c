// Compares every implementation of every kernel with the scalar one, for many lengths and alignments and both orders of
// pages: the same bits, the same first bad element, and no byte outside the arrays changed. Exit status 1 if anything
// differs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terse/optimizers.h"
#include "terse/walk.h"

enum { MAX = 8400, MARGIN = 40, CAPACITY = MAX + 2 * MARGIN, WIRE = MAX / 8 + 80, SENTINEL = 0xA5 };

static long checks, bad;

static uint64_t random_state = 0x9E3779B97F4A7C15u;
static uint64_t random_word(void) {  // splitmix64
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

// Values in (-1, 1); some are zeros of either sign, denormals or large.
static float random_float(void) {
    const uint64_t r = random_word();
    const float sign = r & 16 ? 1.0f : -1.0f;
    switch (r % 8) {
        case 0: return 0.0f;
        case 1: return -0.0f;
        case 2: return sign * (float)(r >> 60) * 0x1p-149f;
        case 3: return sign * 0x1p60f;
    }
    return sign * (float)(r >> 40) * 0x1p-24f;
}

static void expect(int good, const char *kernel, const char *implementation, size_t n, const char *how) {
    checks++;
    if (good) return;
    if (bad++ < 20) printf("%s %s differs from scalar at n = %zu: %s\n", kernel, implementation, n, how);
}

static size_t lengths[128], length_count;
static void list_lengths(void) {
    for (size_t n = 0; n <= 70; n++) lengths[length_count++] = n;
    static const size_t more[] = {95,  96,   97,   127,  128,  129,  191,  192,  193,  255, 256,
                                  257, 1021, 4095, 4096, 4097, 4199, 5003, 8191, 8192, 8265};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) lengths[length_count++] = more[i];
}

// Both sides start from the same theta, m, v, g and packed bits. Each array starts at an odd offset of its own.
typedef struct state {
    float theta[CAPACITY], m[CAPACITY], v[CAPACITY], g[CAPACITY];
    uint8_t wire[CAPACITY], plane[16][WIRE];
} state;
static state mine, scalars;
static size_t at[5];

static void fill(size_t n) {
    terse_walk_use(random_word() % 2 ? 1 : 4, random_word() % 3);
    for (size_t i = 0; i < n + 2 * MARGIN; i++) {
        mine.theta[i] = random_float();
        mine.m[i] = random_float();
        mine.v[i] = fabsf(random_float());
        mine.g[i] = random_word() % 4 ? random_float() : -9.0f * mine.m[i];  // c = 0, or nearly, for beta1 = 0.9
    }
    for (int k = 0; k < 16; k++)
        for (size_t i = 0; i < n / 8 + 64; i++) mine.plane[k][i] = (uint8_t)random_word();
    memset(mine.wire, SENTINEL, sizeof mine.wire);
    for (int j = 0; j < 5; j++) at[j] = random_word() % MARGIN;
    scalars = mine;
}

static int same(void) { return !memcmp(&mine, &scalars, sizeof mine); }

// Compares only the margins: after a bad element the arrays are updated in part, in an order that differs between
// implementations.
static int same_outside(size_t n) {
    state *both[] = {&mine, &scalars};
    for (int side = 0; side < 2; side++) {
        memset(both[side]->theta + at[0], 0, n * sizeof(float));
        memset(both[side]->m + at[1], 0, n * sizeof(float));
        memset(both[side]->v + at[2], 0, n * sizeof(float));
        memset(both[side]->wire + at[4], 0, n / 8 + (n % 8 != 0));
    }
    return same();
}

static void planes_of(const state *s, const uint8_t **planes) {
    for (int k = 0; k < 16; k++) planes[k] = s->plane[k] + (at[4] + 3 * (size_t)k) % 32;
}

static size_t run_lion(const terse_lion *lion, state *s, int kernel, size_t n, const terse_lion_options *o,
                       size_t ranks) {
    const float keep = (float)(1 - o->lr * o->weight_decay), scale = (float)-o->lr;
    const uint8_t *planes[16];
    planes_of(s, planes);
    float *theta = s->theta + at[0], *m = s->m + at[1], *g = s->g + at[3];
    switch (kernel) {
        case 0: return lion->vote(s->wire + at[4], m, g, n, o);
        case 1: return lion->step(theta, m, g, n, o);
        case 2: lion->apply_signs(theta, planes[0], n, keep, scale); return n;
        case 3: lion->apply_ternary(theta, planes[0], planes[1], n, keep, scale); return n;
        case 5: lion->mix(theta, m, g, n, o); return n;
    }
    return lion->apply_tally(theta, planes, ranks, n, keep, scale) == TERSE_OPTIMIZER_OK ? n : (size_t)-1;
}

static const char *const lion_kernels[] = {"lion vote",     "lion step",   "apply_signs",
                                           "apply_ternary", "apply_tally", "lion mix"};
static const float worst[] = {NAN, -NAN, INFINITY, -INFINITY};

// A walk so long that it measures the order and what to prefetch gives the bits of the scalar kernel. Afterwards one
// more file knows both: this kernel's, and no other's.
enum { LENGTH = (8 << 20) + 777, ARRAYS = 4 };
typedef size_t long_step(const void *kernel, float *const array[ARRAYS]);

static void check_long_walk(const char *name, const char *implementation, long_step *step, const void *kernel,
                            const void *scalar) {
    float *const floats = malloc(2 * ARRAYS * sizeof(float) * LENGTH), *mine[ARRAYS], *expected[ARRAYS];
    if (!floats) return expect(0, name, implementation, LENGTH, "there is no memory for this check");
    for (size_t j = 0; j < ARRAYS; j++) {
        mine[j] = floats + j * LENGTH;
        expected[j] = floats + (ARRAYS + j) * LENGTH;
    }
    for (size_t i = 0; i < LENGTH; i++)
        for (int j = 0; j < ARRAYS; j++) mine[j][i] = expected[j][i] = (float)(random_word() >> 40) * 0x1p-24f;
    terse_walk_use(0, 0);
    const unsigned before = terse_walk_measured();
    const size_t accepted = step(kernel, mine);
    expect(terse_walk_measured() == before + (kernel != scalar), name, implementation, LENGTH,
           "a long walk measures for this kernel alone");
    step(scalar, expected);
    expect(accepted == LENGTH && !memcmp(floats, floats + (size_t)ARRAYS * LENGTH, ARRAYS * sizeof(float) * LENGTH),
           name, implementation, LENGTH, "a walk that measures");
    free(floats);
}

static size_t long_lion(const void *kernel, float *const array[ARRAYS]) {
    const terse_lion_options o = {0.01, 0.9, 0.99, 0.1, TERSE_LION_PLUS, 1};
    return ((const terse_lion *)kernel)->step(array[0], array[1], array[2], LENGTH, &o);
}

static size_t long_adamw(const void *kernel, float *const array[ARRAYS]) {
    const terse_adamw_options o = {0.01, 0.9, 0.999, 1e-8, 0.1, 1, 1};
    return ((const terse_adamw *)kernel)->step(array[0], array[1], array[2], array[3], LENGTH, &o);
}

static void check_lion(const terse_lion *lion, const terse_lion *scalar) {
    const char *by = lion->implementation;
    for (size_t l = 0; l < length_count; l++) {
        const size_t n = lengths[l];
        for (int kernel = 0; kernel < 6; kernel++)
            for (int zero = 0; zero < (kernel == 0 ? 2 : kernel == 1 ? 3 : 1); zero++) {
                const terse_lion_options o = {
                    0.01, 0.9, 0.99, zero == 1 ? 0 : 0.1, (terse_lion_zero)zero, zero == 0 ? 1.0f : 0.37f};
                static const size_t ranks_list[] = {1, 2, 3, 5, 8, 15, 100, 1023, 1024};
                for (size_t r = 0; r < (kernel == 4 ? sizeof ranks_list / sizeof *ranks_list : 1); r++) {
                    fill(n);
                    const size_t accepted = run_lion(lion, &mine, kernel, n, &o, ranks_list[r]);
                    expect(accepted == run_lion(scalar, &scalars, kernel, n, &o, ranks_list[r]) && accepted == n,
                           lion_kernels[kernel], by, n, "accepted elements");
                    expect(same(), lion_kernels[kernel], by, n, "results, or memory outside them");
                }
                for (int trial = 0; n && kernel < 2 && trial < 4; trial++) {
                    fill(n);
                    const size_t first = random_word() % n;
                    (trial % 2 ? mine.m + at[1] : mine.g + at[3])[first] = worst[trial];
                    if (n - first > 1)
                        mine.g[at[3] + first + 1 + random_word() % (n - first - 1)] = worst[random_word() % 4];
                    scalars = mine;
                    expect(run_lion(lion, &mine, kernel, n, &o, 0) == first &&
                               run_lion(scalar, &scalars, kernel, n, &o, 0) == first,
                           lion_kernels[kernel], by, n, "index of the first bad element");
                    expect(same_outside(n), lion_kernels[kernel], by, n,
                           "memory outside the arrays, after a bad element");
                }
            }
    }
    // A step is a vote of one rank, applied: the same bits.
    for (size_t l = 0; l < length_count; l++)
        for (int zero = 0; zero < 2; zero++) {
            const size_t n = lengths[l];
            const terse_lion_options o = {0.01, 0.9, 0.99, 0.1, (terse_lion_zero)zero, 0.37f};
            fill(n);
            lion->step(mine.theta + at[0], mine.m + at[1], mine.g + at[3], n, &o);
            lion->vote(scalars.wire + at[4], scalars.m + at[1], scalars.g + at[3], n, &o);
            lion->apply_signs(scalars.theta + at[0], scalars.wire + at[4], n, (float)(1 - o.lr * o.weight_decay),
                              (float)-o.lr);
            memset(scalars.wire, SENTINEL, sizeof scalars.wire);
            expect(same(), "lion step", by, n, "vote and apply_signs give other bits");
        }
    check_long_walk("lion step", by, long_lion, lion, scalar);
    expect(lion->apply_tally(mine.theta, NULL, 0, 1, 1, 1) == TERSE_OPTIMIZER_BAD_RANKS, "apply_tally", by, 1,
           "0 ranks are refused");
    expect(lion->apply_tally(mine.theta, NULL, 1025, 1, 1, 1) == TERSE_OPTIMIZER_BAD_RANKS, "apply_tally", by, 1,
           "1025 ranks are refused");
}

static size_t run_adamw(const terse_adamw *adamw, state *s, size_t n, const terse_adamw_options *o) {
    return adamw->step(s->theta + at[0], s->m + at[1], s->v + at[2], s->g + at[3], n, o);
}

// The comparison needs finite v: the square of a large gradient would overflow, which is an error with a check of its
// own.
static void fill_for_adamw(size_t n) {
    fill(n);
    for (size_t i = 0; i < n + 2 * MARGIN; i++)
        if (fabsf(mine.g[i]) > 1e18f) mine.g[i] = 1e18f;
    scalars = mine;
}

static void check_adamw(const terse_adamw *adamw, const terse_adamw *scalar) {
    const char *by = adamw->implementation;
    for (size_t l = 0; l < length_count; l++)
        for (uint64_t step = 1; step <= 1000; step *= 10) {
            const size_t n = lengths[l];
            const terse_adamw_options o = {0.01, 0.9, 0.999, 1e-8, 0.1, step, step == 1 ? 1.0f : 0.37f};
            fill_for_adamw(n);
            const size_t accepted = run_adamw(adamw, &mine, n, &o);
            expect(accepted == run_adamw(scalar, &scalars, n, &o) && accepted == n, "adamw step", by, n,
                   "accepted elements");
            expect(same(), "adamw step", by, n, "results, or memory outside them");
            for (int trial = 0; n && trial < 4; trial++) {
                fill_for_adamw(n);
                const size_t first = random_word() % n;
                float *const array[] = {mine.m + at[1], mine.v + at[2], mine.g + at[3], mine.g + at[3]};
                array[trial][first] = trial == 3 ? 1e30f : worst[random_word() % 4];  // 1e30 squared is infinite
                scalars = mine;
                expect(run_adamw(adamw, &mine, n, &o) == first && run_adamw(scalar, &scalars, n, &o) == first,
                       "adamw step", by, n, "index of the first bad element");
                expect(same_outside(n), "adamw step", by, n, "memory outside the arrays, after a bad element");
            }
        }
    check_long_walk("adamw step", by, long_adamw, adamw, scalar);
}

static void check_reductions(const terse_reductions *reductions, const terse_reductions *scalar) {
    const char *by = reductions->implementation;
    for (size_t l = 0; l < length_count; l++)
        for (int trial = 0; trial < 4; trial++) {
            const size_t n = lengths[l];
            fill(n);
            const double sum = reductions->sum_of_squares(mine.g + at[3], n),
                         expected = scalar->sum_of_squares(mine.g + at[3], n);
            expect(!memcmp(&sum, &expected, sizeof sum), "sum_of_squares", by, n, "sum");
            const float *const a = mine.v + at[2], *const b = mine.g + at[3];
            float *const difference = mine.m + at[1], *const streamed = mine.theta + at[0];
            const double of_scalar = scalar->difference(scalars.m + at[1], a, b, n, 0);
            memcpy(scalars.theta + at[0], scalars.m + at[1], n * sizeof(float));
            const double of_mine = reductions->difference(difference, a, b, n, 0),
                         of_streamed = reductions->difference(streamed, a, b, n, 1);
            expect(!memcmp(&of_mine, &of_scalar, sizeof of_mine) && !memcmp(&of_streamed, &of_scalar, sizeof of_mine),
                   "difference", by, n, "sum");
            expect(same(), "difference", by, n, "results, or memory outside them");
            if (!n) continue;
            mine.g[at[3] + random_word() % n] = worst[trial];
            const double spoiled = reductions->sum_of_squares(mine.g + at[3], n);
            expect(trial < 2 ? isnan(spoiled) : isinf(spoiled), "sum_of_squares", by, n, "NaN and infinity propagate");
        }
}

// Prints one line per implementation with the number of its checks.
#define CHECK_ALL(kernels)                                                                                    \
    do {                                                                                                      \
        const terse_##kernels *each, *scalar;                                                                 \
        if (terse_##kernels##_find(&scalar, "scalar") != TERSE_OPTIMIZER_OK) return printf("no scalar\n"), 1; \
        for (size_t i = 0; (each = terse_##kernels##_at(i)); i++) {                                           \
            const long before = checks;                                                                       \
            check_##kernels(each, scalar);                                                                    \
            printf("%s %s %ld checks\n", #kernels, each->implementation, checks - before);                    \
        }                                                                                                     \
    } while (0)

int main(void) {
    list_lengths();
    CHECK_ALL(lion);
    CHECK_ALL(adamw);
    CHECK_ALL(reductions);
    printf("%ld checks, %ld bad\n", checks, bad);
    return bad != 0;
}
