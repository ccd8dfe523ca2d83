#include "reductions.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "terse/parallel.h"
#include "terse/walk.h"

enum term { PLAIN, MAGNITUDE, SQUARE };

static inline double sum(const float *x, size_t n, double about, enum term term) {
    double all = 0;
    for (size_t at = 0; at < n; at += TERSE_REDUCTION_CHUNK) {
        const size_t length = n - at < TERSE_REDUCTION_CHUNK ? n - at : TERSE_REDUCTION_CHUNK;
        double partial[16] = {0};
        for (size_t i = 0; i < length; i++) {
            const double value = x[at + i] - about;
            partial[i % 16] += term == SQUARE ? value * value : term == MAGNITUDE ? fabs(value) : value;
        }
        all += terse_reductions_fold(partial);
    }
    return all;
}

static double sum_of_magnitudes(const float *x, size_t n) { return sum(x, n, 0, MAGNITUDE); }
static double sum_of_squares(const float *x, size_t n) { return sum(x, n, 0, SQUARE); }
static double sum_of_squares_and_signs(uint8_t *signs, const float *x, size_t n, int zero_is_plus) {
    terse_write_signs(signs, x, n, zero_is_plus);
    return sum_of_squares(x, n);
}

static float largest(const float *x, size_t n) {
    // Magnitudes order like their bits, and infinities and NaN lie above all.
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        bits &= 0x7fffffffu;
        if (bits > most) most = bits;
    }
    float value;
    memcpy(&value, &most, 4);
    return value;
}

double terse_deviation(const float *x, size_t n) {
    if (n == 0) return 0;
    const double mean = sum(x, n, 0, PLAIN) / (double)n;
    return sqrt(sum(x, n, mean, SQUARE) / (double)n);
}

enum { CHUNKS = 1024 };  // at a time: their sums lie on the stack

typedef struct measuring {
    const float *x;
    terse_chunk_sums *sums;
    terse_signs signs;
    double of_chunks[CHUNKS];
    float (*largest)(const float *x, size_t n);
    atomic_uint most;
} measuring;

static void sum_part(void *context, size_t begin, size_t end) {
    measuring *m = context;
    terse_signs signs = m->signs;
    if (signs.bytes) signs.bytes += begin / 8;
    m->sums(m->of_chunks + begin / TERSE_REDUCTION_CHUNK, m->x + begin, end - begin, signs);
}

double terse_reductions_sum(terse_chunk_sums *sums, const float *x, size_t n, terse_signs signs) {
    measuring m;
    m.sums = sums, m.signs = signs;
    double all = 0;
    for (size_t at = 0, length; at < n; at += length) {
        const size_t most = (size_t)CHUNKS * TERSE_REDUCTION_CHUNK;
        length = n - at < most ? n - at : most;
        m.x = x + at;
        terse_parallel(length, TERSE_REDUCTION_CHUNK, sum_part, &m);
        for (size_t c = 0; c * TERSE_REDUCTION_CHUNK < length; c++) all += m.of_chunks[c];
        if (m.signs.bytes) m.signs.bytes += most / 8;
    }
    return all;
}

static void largest_part(void *context, size_t begin, size_t end) {
    measuring *m = context;
    const float most = m->largest(m->x + begin, end - begin);
    unsigned bits, before = atomic_load(&m->most);
    memcpy(&bits, &most, sizeof bits);
    while (before < bits && !atomic_compare_exchange_weak(&m->most, &before, bits)) {
    }
}

float terse_reductions_largest(float (*largest)(const float *x, size_t n), const float *x, size_t n) {
    if (n <= TERSE_REDUCTION_CHUNK)
        return largest(x, n);  // blocks are often short, and an atomic exchange for each would be slow
    measuring m;
    m.x = x, m.largest = largest;
    atomic_init(&m.most, 0);
    terse_parallel(n, TERSE_WALK_GROUP, largest_part, &m);
    const unsigned bits = atomic_load(&m.most);
    float most;
    memcpy(&most, &bits, sizeof most);
    return most;
}

typedef uint32_t words __attribute__((vector_size(16)));  // every processor has these

typedef struct looking {
    const float *x;
    words seen[4];
} looking;

// Exponents of all ones, of NaN and infinity, carry into bit 31.
TERSE_ROUND_FUNCTION look(void *context, size_t i) {
    looking *l = context;
    terse_prefetch(l->x + i + TERSE_WALK_GROUP);
#pragma GCC unroll 16
    for (size_t k = 0; k < TERSE_ROUND / 4; k++) {
        words bits;
        memcpy(&bits, l->x + i + 4 * k, sizeof bits);
        l->seen[k % 4] |= (bits & 0x7f800000u) + 0x00800000u;
    }
}

size_t terse_first_not_finite(const float *x, size_t n) {
    looking l = {x, {{0}}};
    size_t i = terse_walk(n, look, &l);
    const words seen = l.seen[0] | l.seen[1] | l.seen[2] | l.seen[3];
    if ((seen[0] | seen[1] | seen[2] | seen[3]) >> 31) i = 0;
    for (; i < n; i++)
        if (x[i] - x[i] != 0.0f) return i;
    return n;
}

const terse_reductions terse_reductions_scalar = {sum_of_magnitudes, sum_of_squares, sum_of_squares_and_signs, largest};
