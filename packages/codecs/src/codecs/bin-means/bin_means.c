#include "bin_means.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "terse/parallel.h"

terse_codec_status terse_bin_means_check(size_t n, const terse_codec_options *o) {
    (void)n;
    return o->bits < 2 || o->bits > 4 ? TERSE_CODEC_BAD_BITS : TERSE_CODEC_OK;
}

static size_t table_bytes(size_t n, const terse_codec_options *o) {
    return 4 * terse_scale_group_count(n, o) << o->bits;
}

size_t terse_bin_means_wire_bytes(size_t n, const terse_codec_options *o) {
    return table_bytes(n, o) + terse_field_bytes(n, o->bits);
}

enum { CHUNKS = 256 };  // at a time: their bins lie on the stack

typedef struct summing {
    const terse_bin_means_kernel *kernel;
    const float *x;
    size_t n;
    unsigned bits;
    double per_float;
    terse_bins of_chunks[CHUNKS];
} summing;

static void sum_part(void *context, size_t begin, size_t end) {
    summing *s = context;
    for (size_t at = begin; at < end; at += TERSE_REDUCTION_CHUNK) {
        const size_t length = end - at < TERSE_REDUCTION_CHUNK ? end - at : TERSE_REDUCTION_CHUNK;
        terse_bins *const bins = s->of_chunks + at / TERSE_REDUCTION_CHUNK;
        memset(bins, 0, sizeof *bins);
        s->kernel->sum_chunk(bins, s->x + at, length, s->bits, s->per_float);
    }
}

// On several threads, whose chunks are added in order.
static void sum_long(terse_bins *bins, const terse_bin_means_kernel *kernel, const float *x, size_t n, unsigned bits,
                     double per_float) {
    summing s;
    s.kernel = kernel, s.bits = bits, s.per_float = per_float;
    for (size_t at = 0, length; at < n; at += length) {
        const size_t most = (size_t)CHUNKS * TERSE_REDUCTION_CHUNK;
        length = n - at < most ? n - at : most;
        s.x = x + at;
        terse_parallel(length, TERSE_REDUCTION_CHUNK, sum_part, &s);
        for (size_t c = 0; c * TERSE_REDUCTION_CHUNK < length; c++)
            for (unsigned bin = 0; bin < 1u << bits; bin++) {
                bins->sum[bin] += s.of_chunks[c].sum[bin];
                bins->count[bin] += s.of_chunks[c].count[bin];
            }
    }
}

size_t terse_bin_means_table(const terse_scaling *scaling, double squares, const float *x, size_t begin, size_t end,
                             const terse_codec_options *o, float *table) {
    const terse_bin_means_kernel *kernel = (const terse_bin_means_kernel *)scaling;  // its first member
    const size_t n = end - begin;
    const unsigned m = 1u << o->bits;
    memset(table, 0, m * sizeof *table);
    if (squares - squares != 0.0) return begin + terse_first_not_finite(x + begin, n);
    const double rms = n ? sqrt(squares / (double)n) : 0.0;
    if (rms == 0.0) return end;
    terse_bins bins = {{0}, {0}};
    const double per_float = m / (6 * rms);
    if (n <= TERSE_REDUCTION_CHUNK) kernel->sum_chunk(&bins, x + begin, n, o->bits, per_float);
    else sum_long(&bins, kernel, x + begin, n, o->bits, per_float);
    for (unsigned bin = 0; bin < m; bin++) {
        const double middle = (bin + 0.5) * (6 * rms / m) - 3 * rms;
        const double within = middle > FLT_MAX ? FLT_MAX : middle < -FLT_MAX ? -FLT_MAX : middle;
        table[bin] = (float)terse_mean_of_bin(&bins, bin, within);
    }
    return end;
}

/** The largest float below x, which is finite. Written here, because programs link the library without libm. */
static float next_below(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x == 0) bits = 0x80000001u;
    else bits += x > 0 ? -1u : 1u;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static terse_midpoints midpoints_of(const float *table, unsigned bits) {
    terse_midpoints midpoints = {{0}};
    for (unsigned k = 0; k + 1 < 1u << bits; k++) {
        const double midpoint = ((double)table[k] + (double)table[k + 1]) / 2;
        float below = (float)midpoint;
        if ((double)below > midpoint) below = next_below(below);
        // The k-th node from the left: its depth is that of the trailing ones of k.
        const unsigned up = (unsigned)__builtin_ctz(~k);
        midpoints.above[((1u << bits) + k) >> (up + 1)] = below;
    }
    return midpoints;
}

size_t terse_bin_means_encode(const terse_bin_means_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                              const terse_codec_options *o, size_t begin, size_t end) {
    uint8_t *const fields = wire + table_bytes(n, o);
    TERSE_EACH_GROUP_PART(part, begin, end, n, o) {
        float table[TERSE_MOST_BINS];
        const size_t accepted = terse_scales_of_part(&kernel->scaling, wire, x, &part, begin, o, table);
        if (accepted < part.end) return accepted;
        const terse_midpoints midpoints = midpoints_of(table, o->bits);
        kernel->write(fields, x, &midpoints, o->bits, part.from, part.to);
    }
    return end;
}

int terse_bin_means_is_good(const uint8_t *wire, size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const terse_scale_group_range groups = terse_scale_groups_of(begin, end, n, o);
    for (size_t at = groups.first << o->bits; at < groups.end << o->bits; at++)
        if (!isfinite(terse_scale_at(wire, at))) return 0;
    return 1;
}

terse_codec_status terse_bin_means_decode_add(const terse_bin_means_kernel *kernel, float *sum, const uint8_t *wire,
                                              size_t n, const terse_codec_options *o, size_t begin, size_t end) {
    const size_t tables = table_bytes(n, o), bytes = 4u << o->bits;
    TERSE_EACH_GROUP_PART(part, begin, end, n, o) {
        float values[TERSE_MOST_BINS] = {0};
        memcpy(values, wire + part.r * bytes, bytes);
        for (int entry = 0; entry < TERSE_MOST_BINS; entry++) values[entry] *= o->scale;
        kernel->add(sum, wire + tables, n, o->bits, values, part.from, part.to);
    }
    return TERSE_CODEC_OK;
}

static void sum_chunk(terse_bins *bins, const float *x, size_t n, unsigned bits, double per_float) {
    const int m = 1 << bits;
    terse_chunk_bins chunk = {0};
    for (size_t i = 0; i < n; i++) {
        const int bin = (int)(x[i] * per_float + m / 2);  // what is less than 0 is bin 0, wherever it is rounded to
        terse_add_to_bin(&chunk, (unsigned)(bin < 0 ? 0 : bin < m ? bin : m - 1), i % 16, x[i]);
    }
    terse_end_chunk_of_bins(bins, &chunk, (unsigned)m);
}

void terse_bin_means_write(uint8_t *fields, const float *x, const terse_midpoints *midpoints, unsigned bits,
                           size_t from, size_t to) {
    for (size_t i = from; i < to; i++) terse_set_field(fields, i, bits, terse_nearest_entry(midpoints, x[i], bits));
}

TERSE_BIN_MEANS(scalar, sum_chunk, terse_bin_means_write)
