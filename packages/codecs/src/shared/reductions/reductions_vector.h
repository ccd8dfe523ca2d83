// reductions.h in the words of terse/vector.h, which a file includes before this one.
#include "reductions.h"
#include "terse/walk.h"

enum {
    WIDES = 16 / (LANES / 2),          // that hold the partial sums
    SIDE_BY_SIDE = LANES < 8 ? 1 : 4,  // chunks that are read in turn, as walk.h does with four pages
    AHEAD = 512,                       // the prefetch distance in elements
};

enum sums { MAGNITUDES, SQUARES, SQUARES_AND_SIGNS };

static inline __attribute__((always_inline)) wide term(wide x, const enum sums of) {
    if (of == MAGNITUDES) return WIDE_ABS(x);
    return x * x;
}

// partial[j] += x[j], x[j + 16], ... of `vectors` vectors.
static inline __attribute__((always_inline)) void add(wide partial[WIDES], const float *x, const size_t vectors,
                                                      const enum sums of) {
#pragma GCC unroll 16
    for (size_t k = 0; k < vectors; k++) {
        partial[2 * k % WIDES] += term(LOAD_WIDE(x + LANES * k), of);
        partial[(2 * k + 1) % WIDES] += term(LOAD_WIDE(x + LANES * k + LANES / 2), of);
    }
}

static inline __attribute__((always_inline)) void add_64(wide partial[WIDES], const float *x, size_t i,
                                                         terse_signs signs, const enum sums of) {
    terse_prefetch(x + i + AHEAD);
    add(partial, x + i, VECTORS, of);
    if (of != SQUARES_AND_SIGNS) return;
    mask plus[VECTORS];
    EACH_VECTOR {
        const vec values = LOAD(x + i + LANES * k), zero = SPLAT(0.0f);
        plus[k] = signs.zero_is_plus ? NOT_BELOW(values, zero) : ABOVE(values, zero);
    }
    terse_store_word(signs.bytes + i / 8, WORD(plus));
}

static inline __attribute__((always_inline)) void clear(wide partial[WIDES]) {
#pragma GCC unroll 8
    for (int j = 0; j < WIDES; j++) partial[j] = SPLAT_WIDE(0.0);
}

static inline __attribute__((always_inline)) void store(double in_memory[16], const wide partial[WIDES]) {
#pragma GCC unroll 8
    for (int j = 0; j < WIDES; j++) STORE_WIDE(in_memory + LANES / 2 * j, partial[j]);
}

static inline __attribute__((always_inline)) void sum(double *of_chunks, const float *x, size_t n, terse_signs signs,
                                                      const enum sums of) {
    double in_memory[16];
    size_t at = 0;
    for (; at + SIDE_BY_SIDE * TERSE_REDUCTION_CHUNK <= n; at += SIDE_BY_SIDE * TERSE_REDUCTION_CHUNK) {
        wide partial[SIDE_BY_SIDE][WIDES];
        for (int c = 0; c < SIDE_BY_SIDE; c++) clear(partial[c]);
        for (size_t i = 0; i < TERSE_REDUCTION_CHUNK; i += 64)
#pragma GCC unroll 4
            for (size_t c = 0; c < SIDE_BY_SIDE; c++)
                add_64(partial[c], x, at + c * TERSE_REDUCTION_CHUNK + i, signs, of);
        for (int c = 0; c < SIDE_BY_SIDE; c++)
            store(in_memory, partial[c]), *of_chunks++ = terse_reductions_fold(in_memory);
    }
    for (; at < n; at += TERSE_REDUCTION_CHUNK) {
        const size_t end = n - at < TERSE_REDUCTION_CHUNK ? n : at + TERSE_REDUCTION_CHUNK;
        wide partial[WIDES];
        clear(partial);
        size_t i = at;
        for (; i + 64 <= end; i += 64) add_64(partial, x, i, signs, of);
        if (of == SQUARES_AND_SIGNS) terse_write_signs(signs.bytes + i / 8, x + i, end - i, signs.zero_is_plus);
        for (; i + 16 <= end; i += 16) add(partial, x + i, 16 / LANES, of);
        store(in_memory, partial);
        for (; i < end; i++) {
            const double value = x[i];
            in_memory[(i - at) % 16] += of == MAGNITUDES ? __builtin_fabs(value) : value * value;
        }
        *of_chunks++ = terse_reductions_fold(in_memory);
    }
}

static void magnitudes_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs none) {
    sum(of_chunks, x, n, none, MAGNITUDES);
}
static void squares_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs none) {
    sum(of_chunks, x, n, none, SQUARES);
}
static void squares_and_signs_of_chunks(double *of_chunks, const float *x, size_t n, terse_signs signs) {
    sum(of_chunks, x, n, signs, SQUARES_AND_SIGNS);
}
static double sum_of_magnitudes(const float *x, size_t n) {
    return terse_reductions_sum(magnitudes_of_chunks, x, n, (terse_signs){0});
}
static double sum_of_squares(const float *x, size_t n) {
    return terse_reductions_sum(squares_of_chunks, x, n, (terse_signs){0});
}
static double sum_of_squares_and_signs(uint8_t *signs, const float *x, size_t n, int zero_is_plus) {
    return terse_reductions_sum(squares_and_signs_of_chunks, x, n, (terse_signs){signs, zero_is_plus});
}

typedef struct looking {
    const float *x;
    size_t ahead;
    ints most[2];
} looking;

static inline ints magnitudes(const float *x) { return (ints)LOAD(x) & 0x7fffffff; }

TERSE_ROUND_FUNCTION look(void *context, size_t i) {
    looking *l = context;
    terse_prefetch(l->x + i + l->ahead);
    EACH_VECTOR l->most[k % 2] = MOST_INTS(l->most[k % 2], magnitudes(l->x + i + LANES * k));
}

static float largest_of_part(const float *x, size_t n) {
    looking l = {x, n < TERSE_WALK_GROUP ? AHEAD : TERSE_WALK_GROUP, {SPLAT_INTS(0), SPLAT_INTS(0)}};
    size_t done = terse_walk(n, look, &l);
    for (; done < n && n >= LANES; done += LANES)  // some elements are looked at twice at the end
        l.most[0] = MOST_INTS(l.most[0], magnitudes(x + (n - done < LANES ? n - LANES : done)));
    const int bits = LARGEST_INT(MOST_INTS(l.most[0], l.most[1]));
    float most[2];
    memcpy(most, &bits, sizeof bits);
    if (done >= n) return most[0];
    most[1] = terse_reductions_scalar.largest(x + done, n - done);
    return terse_reductions_scalar.largest(most, 2);
}

static float largest(const float *x, size_t n) { return terse_reductions_largest(largest_of_part, x, n); }

const terse_reductions TERSE_NAMED(terse_reductions) = {sum_of_magnitudes, sum_of_squares, sum_of_squares_and_signs,
                                                        largest};
