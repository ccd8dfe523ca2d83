// dct-top-k over LANES lines at once. The file that includes this defines LANES and `lanes` (that many doubles), INTS
// and `ints` (that many int32_t, which alias anything), COMPARED, `reductions`, and `plainer`, which handles the chunks
// that are too long, and makes a table of encode and decode_add. Every SIMD lane computes one line as a plain loop
// would.
#include <float.h>

#include "../../shared/reductions/reductions.h"
#include "dct_top_k.h"

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// cos(pi t / 2 odd), t < 4 odd.
static inline double cosine_at(const dct_basis *b, size_t t) {
    const size_t half = 2 * b->odd;
    if (t > half) t = 2 * half - t;
    return t > b->odd ? -b->cosine[half - t] : b->cosine[t];
}

// x[r] = sum over s = 0, 1, ... of x[s] cos(pi (2 r + 1) s / 2 c), or with r and s changed about.
static void sums(const dct_basis *b, lanes *x, lanes *spare, size_t c, int inverse) {
    for (size_t r = 0; r < c; r++) {
        const size_t from = inverse ? 0 : r, by = inverse ? 2 * r + 1 : 2 * r;
        lanes sum = {0};
        for (size_t s = 0, t = from; s < c; s++) {
            sum += x[s] * cosine_at(b, t);
            t += by;
            if (t >= 4 * c) t -= 4 * c;
        }
        spare[r] = sum;
    }
    memcpy(x, spare, c * sizeof *x);
}

// In place; `spare` has room for c too.
static void forward(const dct_basis *b, lanes *x, lanes *spare, size_t c) {
    if (c == 1) return;
    if (c % 2) {
        sums(b, x, spare, c, 0);
        return;
    }
    const size_t half = c / 2;
    const double *secant = b->cosine + half + 1;
    lanes *A = spare, *B = spare + half;
    for (size_t i = 0; i < half; i++) {
        const lanes left = x[i], right = x[c - 1 - i];
        A[i] = left + right;
        B[i] = (left - right) * secant[i];
    }
    if (half > 1) {
        forward(b, A, x, half);
        forward(b, B, x + half, half);
    }
    for (size_t j = 0; j + 1 < half; j++) {
        x[2 * j] = A[j];
        x[2 * j + 1] = B[j] + B[j + 1];
    }
    x[c - 2] = A[half - 1];
    x[c - 1] = B[half - 1];
}

static void backward(const dct_basis *b, lanes *x, lanes *spare, size_t c) {
    if (c == 1) return;
    if (c % 2) {
        sums(b, x, spare, c, 1);
        return;
    }
    const size_t half = c / 2;
    const double *secant = b->cosine + half + 1;
    lanes *A = spare, *B = spare + half;
    A[0] = x[0];
    B[0] = x[1];
    for (size_t j = 1; j < half; j++) {
        A[j] = x[2 * j];
        B[j] = x[2 * j + 1] + x[2 * j - 1];
    }
    if (half > 1) {
        backward(b, A, x, half);
        backward(b, B, x + half, half);
    }
    for (size_t i = 0; i < half; i++) {
        const lanes odd = B[i] * secant[i];
        x[i] = A[i] + odd;
        x[c - 1 - i] = A[i] - odd;
    }
}

static inline double factor(const dct_basis *b, size_t j) { return j ? b->other : b->first; }

// How many are `least` or more. x has a whole number of ints, zeros at the end; least is 1 or more.
static size_t count(const float *x, size_t n, uint32_t least) {
    const ints *words = (const ints *)x;
    ints found = {0};
    for (size_t i = 0; i < (n + INTS - 1) / INTS; i++) found += (words[i] & TERSE_MAGNITUDE) >= (int32_t)least;
    int32_t each[INTS], all = 0;
    memcpy(each, &found, sizeof each);
    for (int i = 0; i < INTS; i++) all += each[i];
    return (size_t)(all * COMPARED);  // a true comparison adds 1 or -1
}

// Writes the k largest. Returns 0 if the sum of their magnitudes overflows fp32.
static int write_largest(uint8_t *wire, const float *x, size_t n, size_t k) {
    // The k-th largest magnitude bit by bit from the top: a bit is 1 where k are at least that large.
    uint32_t least = 0;
    size_t as_large = n;
    for (uint32_t bit = (uint32_t)1 << 30; bit && as_large > k; bit >>= 1) {
        const size_t found = count(x, n, least | bit);
        if (found >= k) least |= bit, as_large = found;
    }
    size_t ties = as_large > k ? k - count(x, n, least + 1) : k;
    terse_chosen_writer writer = terse_chosen_writer_at(wire, k, n);
    double sum = 0;
    for (size_t at = 0; at < n; at += 64) {
        uint64_t large = 0;  // by bits, without an unpredictable branch
        for (size_t i = at; i < n && i < at + 64; i++)
            large |= (uint64_t)(terse_magnitude_bits(x + i) >= least) << (i - at);
        for (; large; large &= large - 1) {
            const size_t i = at + (size_t)__builtin_ctzll(large);
            const uint32_t magnitude = terse_magnitude_bits(x + i);
            if (magnitude == least) {
                if (ties == 0) continue;
                ties--;
            }
            terse_choose(&writer, i, x + i);
            float value;
            memcpy(&value, &magnitude, 4);
            sum += (double)value;
        }
    }
    terse_chosen_end(&writer);
    return sum <= FLT_MAX;
}

enum { ROOM = DCT_LONGEST };  // doubles in flight

// Loads one line of c numbers per SIMD lane: number i of line l is from[l * apart + i * step]. If there are fewer lines
// than lanes, the last one is repeated.
#define LOAD_LINES(work, from, lines, apart, step, c) \
    for (size_t i = 0; i < (c); i++)                  \
        for (size_t l = 0; l < LANES; l++)            \
    (work)[i * LANES + l] = (from)[smaller(l, (lines) - 1) * (apart) + i * (step)]

// Chunks that are one line each.
static __attribute__((noinline)) size_t encode_lines(uint8_t *wire, const float *x, const dct_basis *b,
                                                     const dct_chunks *chunks, size_t lines) {
    _Alignas(64) double work[2][ROOM];
    _Alignas(64) float coefficients[ROOM + INTS * LANES];
    const size_t c = b->length, row = (c + INTS - 1) / INTS * INTS, k = dct_kept(chunks, c);
    LOAD_LINES(work[0], x, lines, c, 1, c);
    forward(b, (lanes *)work[0], (lanes *)work[1], c);
    for (size_t l = 0; l < lines; l++) {
        for (size_t j = 0; j < c; j++) coefficients[l * row + j] = (float)(work[0][j * LANES + l] * factor(b, j));
        memset(coefficients + l * row + c, 0, (row - c) * sizeof *coefficients);
        if (!write_largest(wire + l * chunks->bytes, coefficients + l * row, c, k)) return l;
    }
    return lines;
}

static __attribute__((noinline)) int encode_square(uint8_t *wire, const float *x, const dct_basis *b,
                                                   const dct_chunks *chunks) {
    _Alignas(64) double work[2][LANES * DCT_WIDEST];
    _Alignas(64) float coefficients[DCT_WIDEST * DCT_WIDEST + INTS];
    double plane[DCT_WIDEST * DCT_WIDEST];
    const size_t c = b->length;
    for (size_t r = 0; r < c; r += LANES) {
        const size_t rows = smaller(LANES, c - r);
        LOAD_LINES(work[0], x + r * c, rows, c, 1, c);
        forward(b, (lanes *)work[0], (lanes *)work[1], c);
        for (size_t l = 0; l < rows; l++)
            for (size_t j = 0; j < c; j++) plane[(r + l) * c + j] = work[0][j * LANES + l] * factor(b, j);
    }
    for (size_t column = 0; column < c; column += LANES) {
        const size_t columns = smaller(LANES, c - column);
        LOAD_LINES(work[0], plane + column, columns, 1, c, c);
        forward(b, (lanes *)work[0], (lanes *)work[1], c);
        for (size_t j = 0; j < c; j++)
            for (size_t l = 0; l < columns; l++)
                coefficients[j * c + column + l] = (float)(work[0][j * LANES + l] * factor(b, j));
    }
    memset(coefficients + c * c, 0, INTS * sizeof *coefficients);
    return write_largest(wire, coefficients, c * c, dct_kept(chunks, c * c));
}

// How many lines of c go at once; 0 where they are too long.
static size_t lines_at_once(size_t c) { return c * LANES <= ROOM ? LANES : 0; }

static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end) {
    const float largest = reductions->largest(x + begin, end - begin);
    if (largest - largest != 0.0f) return begin + terse_first_not_finite(x + begin, end - begin);
    const dct_chunks chunks = dct_chunks_of(n, options, begin, end);
    const int square = options->dimensions == 2;
    dct_basis basis;
    basis.length = 0;
    for (size_t chunk = chunks.begin, done; chunk < chunks.end; chunk += done) {
        const size_t length = dct_chunk_length(&chunks, chunk), side = square ? options->block : length;
        uint8_t *to = wire + chunk * chunks.bytes;
        const float *from = x + chunk * chunks.length;
        if (!square && lines_at_once(side) == 0) return plainer.encode(wire, x, n, options, begin, end);
        if (basis.length != side) dct_basis_of(&basis, side);
        const size_t whole = length < chunks.length ? 1 : smaller(chunks.end, n / chunks.length) - chunk;
        const size_t wanted = square ? 1 : smaller(whole, lines_at_once(side));
        done = square ? (size_t)encode_square(to, from, &basis, &chunks)
                      : encode_lines(to, from, &basis, &chunks, wanted);
        if (done < wanted) {
            const size_t refused = dct_refused(x, &chunks, chunk + done, end);
            if (refused < end) return refused;
            done++;
        }
    }
    return end;
}

static __attribute__((noinline)) void decode_lines(float *sum, const uint8_t *wire, const dct_basis *b,
                                                   const dct_chunks *chunks, size_t lines, float scale) {
    _Alignas(64) double work[2][ROOM];
    const size_t c = b->length, k = dct_kept(chunks, c);
    memset(work[0], 0, c * LANES * sizeof(double));
    for (size_t l = 0; l < lines; l++) {
        terse_chosen_reader reader = terse_chosen_reader_at(wire + l * chunks->bytes, k, c);
        for (size_t j = 0; j < k; j++) {
            float value;
            const size_t index = terse_next_chosen(&reader, &value);
            work[0][index * LANES + l] = (double)value * factor(b, index);
        }
    }
    backward(b, (lanes *)work[0], (lanes *)work[1], c);
    for (size_t l = 0; l < lines; l++)
        for (size_t i = 0; i < c; i++) sum[l * c + i] += scale * (float)work[0][i * LANES + l];
}

static __attribute__((noinline)) void decode_square(float *sum, const uint8_t *wire, const dct_basis *b,
                                                    const dct_chunks *chunks, float scale) {
    _Alignas(64) double work[2][LANES * DCT_WIDEST];
    double plane[DCT_WIDEST * DCT_WIDEST];
    const size_t c = b->length, k = dct_kept(chunks, c * c);
    memset(plane, 0, c * c * sizeof *plane);
    terse_chosen_reader reader = terse_chosen_reader_at(wire, k, c * c);
    for (size_t j = 0; j < k; j++) {
        float value;
        const size_t index = terse_next_chosen(&reader, &value);
        plane[index] = (double)value * factor(b, index / c);
    }
    for (size_t column = 0; column < c; column += LANES) {
        const size_t columns = smaller(LANES, c - column);
        LOAD_LINES(work[0], plane + column, columns, 1, c, c);
        backward(b, (lanes *)work[0], (lanes *)work[1], c);
        for (size_t i = 0; i < c; i++)
            for (size_t l = 0; l < columns; l++)
                plane[i * c + column + l] = work[0][i * LANES + l] * factor(b, column + l);
    }
    for (size_t r = 0; r < c; r += LANES) {
        const size_t rows = smaller(LANES, c - r);
        LOAD_LINES(work[0], plane + r * c, rows, c, 1, c);
        backward(b, (lanes *)work[0], (lanes *)work[1], c);
        for (size_t l = 0; l < rows; l++)
            for (size_t i = 0; i < c; i++) sum[(r + l) * c + i] += scale * (float)work[0][i * LANES + l];
    }
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end) {
    const dct_chunks chunks = dct_chunks_of(n, options, begin, end);
    const int square = options->dimensions == 2;
    dct_basis basis;
    basis.length = 0;
    for (size_t chunk = chunks.begin, done; chunk < chunks.end; chunk += done) {
        const size_t length = dct_chunk_length(&chunks, chunk), side = square ? options->block : length;
        const uint8_t *from = wire + chunk * chunks.bytes;
        float *to = sum + chunk * chunks.length;
        if (!square && lines_at_once(side) == 0) return plainer.decode_add(sum, wire, n, options, begin, end);
        if (basis.length != side) dct_basis_of(&basis, side);
        const size_t whole = length < chunks.length ? 1 : smaller(chunks.end, n / chunks.length) - chunk;
        done = square ? 1 : smaller(whole, lines_at_once(side));
        if (square) decode_square(to, from, &basis, &chunks, options->scale);
        else decode_lines(to, from, &basis, &chunks, done, options->scale);
    }
    return TERSE_CODEC_OK;
}

#define DCT_TOP_K(by)                          \
    const terse_codec terse_dct_top_k_##by = { \
        .name = "dct-top-k",                   \
        .implementation = #by,                 \
        .takes = DCT_TOP_K_TAKES,              \
        .check = dct_top_k_check,              \
        .wire_bytes = dct_top_k_wire_bytes,    \
        .encode = encode,                      \
        .is_good = dct_wire_is_good,           \
        .decode_add = decode_add,              \
        .scattered = 1,                        \
    };
