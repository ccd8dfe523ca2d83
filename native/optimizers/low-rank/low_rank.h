// The kernels of terse/optimizers.h on low-rank factors. low_rank.c and low_rank_<instructions>.c compile this file
// with a few words of terse/vector.h:
//
//   vec, LANES      floats in a register
//   ROWS            rows of a tile: ROWS * VECS sums stay in registers
//   LOAD STORE SPLAT FMA
//   TRANSPOSE       transposes a square of LANES * LANES floats; where it is missing, they are copied one by one
//
// Every sum is a chain of fused multiply-adds in the order of k, whatever the tile, so all implementations give the
// same bits. It is the one kernel that fuses: it is bound by arithmetic, not by memory, and two roundings in place of
// one would take twice as long.
#ifndef TERSE_LOW_RANK_H
#define TERSE_LOW_RANK_H
#include <math.h>
#include <string.h>

#include "terse/optimizers.h"

enum {
    VECS = 2,
    WIDTH = VECS * LANES,
    FEW = 4,
    STRIP = 96,  // rows that share a strip of packed columns in the cache
    FETCH = 32,  // products of a sum between two fetches
};

static size_t packed_floats(size_t n, size_t r) { return (n + WIDTH - 1) / WIDTH * WIDTH * r; }

//   q (n, r), rows of r floats       packed: for each WIDTH columns of x, r rows of WIDTH floats; 0 past column n
static void pack(float *packed, const float *q, size_t n, size_t r) {
    for (size_t j = 0; j < n; j += WIDTH, packed += WIDTH * r) {
        const size_t columns = n - j < WIDTH ? n - j : WIDTH;
        if (columns < WIDTH) memset(packed, 0, WIDTH * r * sizeof(float));
        size_t whole = 0;  // of the r columns of q, those in squares of LANES
#ifdef TRANSPOSE
        if (columns == WIDTH)
            for (; whole + LANES <= r; whole += LANES)
                for (size_t v = 0; v < VECS; v++)
                    TRANSPOSE(packed + whole * WIDTH + v * LANES, WIDTH, q + (j + v * LANES) * r + whole, r);
#endif
        for (size_t c = 0; c < columns; c++)
            for (size_t k = whole; k < r; k++) packed[k * WIDTH + c] = q[(j + c) * r + k];
    }
}

// Rows lie far apart, so no processor fetches them by itself. They are fetched one after the other while sums are
// computed: all at once they take the buffers that packed columns pass through too (134 GFLOP/s in place of 160 on a
// Xeon that multiplies 175 in registers).
static inline __attribute__((always_inline)) void fetch_row(const float *x) {
#pragma GCC unroll 2
    for (size_t j = 0; j < WIDTH; j += 16) __builtin_prefetch(x + j, 1);
}

// sums += `count` columns of p times as many rows of packed columns
static inline __attribute__((always_inline)) void add_products(vec sums[ROWS][VECS], const float *p,
                                                               const float *packed, size_t r, size_t count,
                                                               size_t rows) {
    for (size_t k = 0; k < count; k++) {
        const vec first = LOAD(packed + k * WIDTH), second = LOAD(packed + k * WIDTH + LANES);
#pragma GCC unroll 16
        for (size_t i = 0; i < rows; i++) {
            const vec a = SPLAT(p[i * r + k]);
            sums[i][0] = FMA(a, first, sums[i][0]);
            sums[i][1] = FMA(a, second, sums[i][1]);
        }
    }
}

// `rows` rows of x, of n floats each, in one block of `columns` columns
static inline __attribute__((always_inline)) void tile(float *x, const float *p, const float *packed, size_t n,
                                                       size_t r, float keep, float scale, size_t rows, size_t columns) {
    vec sums[ROWS][VECS];
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (size_t v = 0; v < VECS; v++) sums[i][v] = SPLAT(0.0f);
    size_t k = 0, fetched = 0;
    for (; k + FETCH <= r; k += FETCH) {
        for (const size_t end = rows * (k + FETCH) / r; fetched < end; fetched++) fetch_row(x + fetched * n);
        add_products(sums, p + k, packed + k * WIDTH, r, FETCH, rows);
    }
    for (; fetched < rows; fetched++) fetch_row(x + fetched * n);
    add_products(sums, p + k, packed + k * WIDTH, r, r - k, rows);
    const vec kept = SPLAT(keep), scaled = SPLAT(scale);
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        float line[WIDTH];
        float *at = x + i * n;
        if (columns < WIDTH) at = memcpy(line, at, columns * sizeof(float));
#pragma GCC unroll 2
        for (size_t v = 0; v < VECS; v++) STORE(at + v * LANES, kept * LOAD(at + v * LANES) + scaled * sums[i][v]);
        if (columns < WIDTH) memcpy(x + i * n, line, columns * sizeof(float));
    }
}

static inline __attribute__((always_inline)) void tiles(float *x, const float *p, const float *packed, size_t m,
                                                        size_t n, size_t r, float keep, float scale, size_t columns) {
    size_t i = 0;
    for (; i + ROWS <= m; i += ROWS) tile(x + i * n, p + i * r, packed, n, r, keep, scale, ROWS, columns);
    for (; i + FEW <= m; i += FEW) tile(x + i * n, p + i * r, packed, n, r, keep, scale, FEW, columns);
    for (; i < m; i++) tile(x + i * n, p + i * r, packed, n, r, keep, scale, 1, columns);
}

static void add(float *x, const float *p, const float *packed, size_t m, size_t n, size_t r, float keep, float scale) {
    for (size_t i = 0; i < m; i += STRIP) {
        const size_t rows = m - i < STRIP ? m - i : STRIP;
        for (size_t j = 0; j < n; j += WIDTH) {
            float *at = x + i * n + j;
            if (n - j >= WIDTH) tiles(at, p + i * r, packed + j * r, rows, n, r, keep, scale, WIDTH);
            else tiles(at, p + i * r, packed + j * r, rows, n, r, keep, scale, n - j);
        }
    }
}

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void normalize(float *restrict q, float *restrict columns, size_t n, size_t r, double threshold,
                      double *restrict norms) {
    for (size_t k = 0; k < r; k++) norms[k] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < r; k++) norms[k] += (double)columns[i * r + k] * columns[i * r + k];
    double largest = 0;
    for (size_t k = 0; k < r; k++) largest = norms[k] > largest ? norms[k] : largest;
    const double least = threshold * sqrt(largest);
    for (size_t k = 0; k < r; k++) norms[k] = sqrt(norms[k]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < r; k++) {
            const size_t at = i * r + k;
            const uint32_t usable = norms[k] > least ? UINT32_MAX : 0;  // a mask and no branch, so that compilers make
                                                                        // vectors of it
            const uint32_t unit = bits_of((float)(columns[at] / norms[k])) & usable;
            columns[at] = float_of(unit);
            q[at] = float_of(unit | (bits_of(q[at]) & ~usable));
        }
}

#endif
