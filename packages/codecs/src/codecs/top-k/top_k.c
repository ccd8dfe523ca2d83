#include "top_k.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../../shared/fields/fields.h"
#include "../../shared/means-of-bins/means_of_bins.h"
#include "../../shared/reductions/reductions.h"
#include "../f16/f16.h"
#include "../sign/sign.h"
#include "terse/parallel.h"

terse_codec_status top_k_check(size_t n, const terse_codec_options *options) {
    if (options->indices > TERSE_INDICES_ELIAS_FANO || options->values > TERSE_VALUES_SIGN)
        return TERSE_CODEC_BAD_CHOICE;
    return options->k < 1 || options->k > n ? TERSE_CODEC_BAD_K : TERSE_CODEC_OK;
}

size_t top_k_wire_bytes(size_t n, const terse_codec_options *options) { return top_k_wire_of(n, options).bytes; }

static int count(top_k_sight *sight, const float *x, size_t begin, size_t end) {
    uint32_t most = 0;
    for (size_t i = begin; i < end; i++) {
        const uint32_t magnitude = terse_magnitude_bits(x + i);
        most = magnitude > most ? magnitude : most;
        if (magnitude >= sight->end) sight->beyond++;
        else if (magnitude >= sight->low) top_k_count_one(sight, magnitude);
    }
    return most < TERSE_INFINITE;
}

static void choose(top_k_choice *choice, size_t begin, size_t end) {
    for (size_t i = begin; i < end && choice->left; i++)
        if (terse_magnitude_bits(choice->x + i) >= choice->least) top_k_choose_one(choice, i);
}

static void copy(top_k_segment *to, const float *x, size_t n, uint32_t least) {
    memset(to->count, 0, sizeof to->count);
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = terse_magnitude_bits(x + i);
        to->most = magnitude > to->most ? magnitude : to->most;
        if (magnitude >= least) top_k_copy_one(to, x, i);
    }
}

const top_k_kernel top_k_scalar_kernel = {count, choose, copy, &terse_f16_scalar, &terse_sign_scalar};

enum { SAMPLED = 4096, PLACES_AHEAD = 16, ALL_SHIFT = 31 - TOP_K_RANGE_BITS };

static void look(top_k_sight *sight, uint32_t low, int shift) {
    const uint64_t end = low + ((uint64_t)TOP_K_RANGES << shift);
    memset(sight, 0, sizeof *sight);
    sight->low = low, sight->shift = shift, sight->end = end < TERSE_INFINITE ? (uint32_t)end : TERSE_INFINITE;
}

typedef struct sample {
    const float *x;
    size_t n, places, stride;
    double expected, margin;  // which of the sample is as large as the k-th largest of all, and how far off that may be
} sample;

static const float *sampled(const sample *s, size_t i) { return s->x + top_k_sampled(s->stride, TOP_K_NEIGHBOURS, i); }

static sample sample_of(const float *x, size_t n, size_t k) {
    const size_t places = top_k_sampled_places(n);
    const double expected = (double)k * (double)(places * TOP_K_NEIGHBOURS) / (double)n;
    return (sample){x, n, places, n / places, expected, 24 + expected / 8};
}

static void count_sample(top_k_sight *sight, const sample *s) {
    for (size_t i = 0; i < s->places; i++) {
        __builtin_prefetch(sampled(s, i + PLACES_AHEAD));
        count(sight, sampled(s, i), 0, TOP_K_NEIGHBOURS);
    }
}

// Looks where the k-th largest probably lies: in the range that holds it in a sample, and some more on either side.
static void look_where_a_sample_says(top_k_sight *sight, const sample *s) {
    look(sight, 0, ALL_SHIFT);
    count_sample(sight, s);
    double seen = (double)sight->beyond;  // what is not finite
    int high = TOP_K_RANGES - 1, low;
    while (high > 0 && seen + (double)sight->in[high] <= s->expected - s->margin) seen += (double)sight->in[high--];
    for (low = high; low > 0 && seen + (double)sight->in[low] < s->expected + s->margin; low--)
        seen += (double)sight->in[low];
    int shift = ALL_SHIFT - TOP_K_RANGE_BITS;  // as fine as it can be and see all of them
    for (int seen_at_once = 1; seen_at_once < high + 1 - low; seen_at_once *= 2) shift++;
    look(sight, (uint32_t)low << ALL_SHIFT, shift);
}

// A magnitude that is probably a little less than the k-th largest. *expected: an upper estimate of how many elements
// are at least as large.
static uint32_t lower_bound(top_k_sight *sight, const sample *s, size_t *expected) {
    count_sample(sight, s);
    double seen = (double)sight->beyond;
    int range = TOP_K_RANGES - 1;
    while (range > 0 && seen + (double)sight->in[range] < s->expected + s->margin) seen += (double)sight->in[range--];
    const double all = (seen + (double)sight->in[range] + s->margin) * 1.25 * (double)s->n /
                       (double)(s->places * TOP_K_NEIGHBOURS);
    *expected = all < (double)s->n ? (size_t)all : s->n;
    const uint32_t bound = sight->low + ((uint32_t)range << sight->shift);
    look(sight, sight->low, sight->shift);
    return bound;
}

enum { AT_ONCE = 1 << 30 };  // SIMD lanes count to 2^32

static int count_all(const top_k_kernel *kernel, top_k_sight *sight, const float *x, size_t n) {
    for (size_t at = 0; at < n; at += AT_ONCE)
        if (!kernel->count(sight, x, at, n - at < AT_ONCE ? n : at + AT_ONCE)) return 0;
    return 1;
}

// *least: the k-th largest magnitude. *ties: how many elements that equal it are chosen. False if a float is NaN or
// infinite.
static int find(const top_k_kernel *kernel, top_k_sight *sight, const float *x, size_t n, size_t k, uint32_t *least,
                size_t *ties) {
    for (;;) {
        if (!count_all(kernel, sight, x, n)) return 0;
        size_t larger = sight->beyond;
        int range = TOP_K_RANGES - 1;
        while (range >= 0 && larger + sight->in[range] < k) larger += sight->in[range--];
        if (sight->beyond >= k || range < 0) {  // the sample misled
            look(sight, 0, ALL_SHIFT);
            continue;
        }
        *least = sight->low + ((uint32_t)range << sight->shift);
        *ties = k - larger;
        if (sight->shift == 0 || *ties == sight->in[range])
            return 1;  // all of a range are chosen: no need to look into it
        look(sight, *least, sight->shift > TOP_K_RANGE_BITS ? sight->shift - TOP_K_RANGE_BITS : 0);
    }
}

enum { PIECES = 128, SMALL_PART = 8 };

// The elements that may be chosen, copied from x segment by segment.
typedef struct copies {
    const top_k_kernel *kernel;
    const float *x;
    size_t n, k, room, piece;  // piece: elements of it
    uint32_t low, least;
    uint8_t *indices, *chosen;  // where the indices are written, and the chosen values, if they are wanted
    terse_index_layout layout;
    float *values;
    uint16_t *places;
    struct segment {
        size_t at, count;
    } *segments;  // of the values and places
    atomic_size_t taken;
    atomic_int infinite;
    struct {
        size_t larger, equal, begin;
        terse_chosen_writer writer;
    } of_piece[PIECES];  // begin: how many are chosen before it
} copies;

static void copy_part(void *context, size_t begin, size_t end) {
    copies *c = context;
    top_k_segment segment = {.most = 0};
    for (size_t at = begin; at < end; at += TOP_K_SEGMENT) {
        c->kernel->copy(&segment, c->x + at, end - at < TOP_K_SEGMENT ? end - at : TOP_K_SEGMENT, c->low);
        size_t count = 0;
        for (size_t page = 0; page < TOP_K_PAGES; page++) count += segment.count[page];
        size_t to = count ? atomic_fetch_add(&c->taken, count) : 0;
        if (to + count > c->room) return;  // seen by what is taken
        c->segments[at / TOP_K_SEGMENT] = (struct segment){to, count};
        for (size_t page = 0; page < TOP_K_PAGES; to += segment.count[page++]) {
            memcpy(c->values + to, segment.values[page], segment.count[page] * sizeof *c->values);
            memcpy(c->places + to, segment.places[page], segment.count[page] * sizeof *c->places);
        }
    }
    if (segment.most >= TERSE_INFINITE) atomic_store(&c->infinite, 1);
}

typedef int32_t lanes __attribute__((vector_size(16)));  // every processor has these

static void weigh_part(void *context, size_t begin, size_t end) {
    copies *c = context;
    for (size_t at = begin; at < end; at += TOP_K_SEGMENT) {
        const struct segment s = c->segments[at / TOP_K_SEGMENT];
        const lanes least = (lanes){0} + (int32_t)c->least;
        lanes larger = {0}, equal = {0};  // less, as a comparison gives -1
        size_t i = s.at;
        for (; i + 4 <= s.at + s.count; i += 4) {
            lanes bits;
            memcpy(&bits, c->values + i, sizeof bits);
            larger += (bits & TERSE_MAGNITUDE) > least, equal += (bits & TERSE_MAGNITUDE) == least;
        }
        for (; i < s.at + s.count; i++) {
            const uint32_t magnitude = terse_magnitude_bits(c->values + i);
            larger[0] -= magnitude > c->least, equal[0] -= magnitude == c->least;
        }
        c->of_piece[at / c->piece].larger -= (size_t)(larger[0] + larger[1] + larger[2] + larger[3]);
        c->of_piece[at / c->piece].equal -= (size_t)(equal[0] + equal[1] + equal[2] + equal[3]);
    }
}

static void write_part(void *context, size_t begin, size_t end) {
    copies *c = context;
    for (size_t piece = begin / c->piece; piece * c->piece < end; piece++) {
        terse_chosen_writer *writer = &c->of_piece[piece].writer;
        size_t ties = c->of_piece[piece].equal;
        const size_t first = piece * c->piece, last = c->n - first < c->piece ? c->n : first + c->piece;
        for (size_t at = first; at < last; at += TOP_K_SEGMENT) {
            const struct segment s = c->segments[at / TOP_K_SEGMENT];
            for (size_t i = s.at; i < s.at + s.count; i++) {
                const uint32_t magnitude = terse_magnitude_bits(c->values + i);
                if (magnitude < c->least || (magnitude == c->least && ties == 0)) continue;
                ties -= magnitude == c->least;
                terse_choose(writer, at + c->places[i], c->values + i);
            }
        }
        terse_write_whole_bytes(writer);
        terse_write_marks(writer);
    }
}

// A piece may begin within a byte of low bits. The bits that the pieces before it have left are or-ed into that byte.
static void write_pieces(copies *c, size_t pieces, size_t ties) {
    size_t begin = 0;
    for (size_t p = 0; p < pieces; p++) {
        c->of_piece[p].equal = c->of_piece[p].equal < ties ? c->of_piece[p].equal : ties;
        ties -= c->of_piece[p].equal;
        c->of_piece[p].writer = terse_chosen_writer_from(c->indices, c->chosen, c->layout, begin);
        begin += c->of_piece[p].larger + c->of_piece[p].equal;
    }
    // Fixed indices have 12 bits or more, so a byte between two pieces is filled by the next; no piece fills the last.
    c->indices[c->layout.bytes - 1] = 0;
    terse_parallel(c->n, c->piece, write_part, c);
    for (size_t p = 0; p < pieces; p++)
        if (c->of_piece[p].writer.count) *c->of_piece[p].writer.low |= (uint8_t)c->of_piece[p].writer.bits;
}

// Returns false if this is not possible: the sample was misleading, or there is no memory.
static int encode_copies(const top_k_kernel *kernel, top_k_sight *sight, const sample *s, uint8_t *indices,
                         uint8_t *chosen, terse_index_layout layout, const float *x, size_t n, size_t k) {
    size_t expected;
    const uint32_t low = lower_bound(sight, s, &expected);
    const size_t segments = (n + TOP_K_SEGMENT - 1) / TOP_K_SEGMENT, room = expected + TOP_K_SEGMENT;
    copies c = {.kernel = kernel,
                .x = x,
                .n = n,
                .k = k,
                .room = room,
                .low = low,
                .indices = indices,
                .chosen = chosen,
                .layout = layout};
    c.segments = malloc(segments * sizeof *c.segments + room * (sizeof *c.values + sizeof *c.places));
    if (!c.segments) return 0;
    c.values = (float *)(c.segments + segments);
    c.places = (uint16_t *)(c.values + room);
    c.piece = (segments + PIECES - 1) / PIECES * TOP_K_SEGMENT;
    terse_parallel(n, TOP_K_SEGMENT, copy_part, &c);
    const size_t taken = atomic_load(&c.taken);
    size_t ties;
    int good = taken <= room && !atomic_load(&c.infinite) && taken >= k;
    if (good) {
        find(kernel, sight, c.values, taken, k, &c.least, &ties);
        terse_parallel(n, c.piece, weigh_part, &c);
        write_pieces(&c, (n + c.piece - 1) / c.piece, ties);
    }
    free(c.segments);
    return good;
}

// Writes the indices, and the chosen values to `chosen` where it is not NULL. Returns n, or the first element that is
// not finite.
static size_t choose_all(const top_k_kernel *kernel, uint8_t *indices, uint8_t *chosen, terse_index_layout layout,
                         const float *x, size_t n, size_t k) {
    top_k_sight sight;
    if (layout.marks) memset(indices, 0, layout.bytes);
    if (n < SAMPLED) look(&sight, 0, ALL_SHIFT);
    else {
        const sample s = sample_of(x, n, k);
        look_where_a_sample_says(&sight, &s);
        if (k <= n / SMALL_PART && encode_copies(kernel, &sight, &s, indices, chosen, layout, x, n, k)) return n;
    }
    top_k_choice choice = {.writer = terse_chosen_writer_from(indices, chosen, layout, 0), .x = x, .left = k};
    if (!find(kernel, &sight, x, n, k, &choice.least, &choice.ties)) return terse_first_not_finite(x, n);
    kernel->choose(&choice, 0, n);
    terse_chosen_end(&choice.writer);
    return n;
}

size_t top_k_encode(const top_k_kernel *kernel, uint8_t *wire, const float *x, size_t n, const terse_codec_options *o) {
    const top_k_wire parts = top_k_wire_of(n, o);
    const int as_they_are = o->values == TERSE_VALUES_F32;
    float *const kept = as_they_are ? NULL : malloc(o->k * sizeof *kept);
    uint8_t *const chosen = as_they_are ? wire + parts.values : (uint8_t *)kept;
    size_t accepted = choose_all(kernel, wire + parts.indices, chosen, parts.layout, x, n, o->k);
    if (accepted == n && !as_they_are) {
        const size_t written = top_k_write_values(kernel, wire, kept, x, n, o);
        terse_index_reader reader = terse_index_reader_at(wire + parts.indices, parts.layout);
        for (size_t j = 0; written < o->k && j <= written; j++) terse_read_indices(&reader, &accepted, 1);
    }
    free(kept);
    return accepted;
}

enum { BLOCK = 1024 };  // elements that are read at a time: whole bytes of values

// The kept values, a block at a time.
typedef struct kept_values {
    const float *values, *x;  // values: NULL: they are read from x
    terse_index_reader reader;
    size_t places[BLOCK];
    float room[BLOCK];
} kept_values;

static const float *next_block(kept_values *kept, size_t at, size_t count) {
    if (kept->values) return kept->values + at;
    if (at == 0) kept->reader = terse_index_reader_at(kept->reader.indices, kept->reader.layout);
    terse_read_indices(&kept->reader, kept->places, count);
    for (size_t i = 0; i < count; i++) kept->room[i] = kept->x[kept->places[i]];
    return kept->room;
}

// A sum in the order of shared/reductions, from blocks.
typedef struct block_sum {
    double all, partial[16];
} block_sum;

// `at`: elements before this block. A chunk of the reductions is a whole number of blocks.
static void end_block(block_sum *s, size_t at, size_t count) {
    if ((at + count) % TERSE_REDUCTION_CHUNK) return;
    s->all += terse_reductions_fold(s->partial);
    memset(s->partial, 0, sizeof s->partial);
}

static double total(block_sum *s) { return s->all + terse_reductions_fold(s->partial); }

// For every block of the kept values: c, `at` and `count`.
#define EACH_BLOCK for (size_t at = 0, count; count = k - at < BLOCK ? k - at : BLOCK, at < k; at += count)

static void write_two_bits(uint8_t *table, uint8_t *values, kept_values *kept, size_t k) {
    block_sum sum = {0}, squares = {0};
    EACH_BLOCK {
        const float *c = next_block(kept, at, count);
        for (size_t i = 0; i < count; i++) sum.partial[i % 16] += (double)c[i];
        end_block(&sum, at, count);
    }
    const double mean = total(&sum) / (double)k;
    EACH_BLOCK {
        const float *c = next_block(kept, at, count);
        for (size_t i = 0; i < count; i++) squares.partial[i % 16] += ((double)c[i] - mean) * ((double)c[i] - mean);
        end_block(&squares, at, count);
    }
    const double reach = 1.5 * sqrt(total(&squares) / (double)k), low = mean - reach, high = mean + reach;
    terse_bins bins = {{0}, {0}};
    terse_chunk_bins chunk = {0};
    EACH_BLOCK {
        const float *c = next_block(kept, at, count);
        for (size_t i = 0; i < count; i++) {
            const unsigned bin = (unsigned)(c[i] >= low) + (unsigned)(c[i] >= mean) + (unsigned)(c[i] >= high);
            terse_set_field(values, at + i, 2, bin);
            terse_add_to_bin(&chunk, bin, i % 16, c[i]);
        }
        if ((at + count) % TERSE_REDUCTION_CHUNK == 0 || at + count == k) terse_end_chunk_of_bins(&bins, &chunk, 4);
    }
    for (unsigned bin = 0; bin < 4; bin++) {
        const float of_bin = (float)terse_mean_of_bin(&bins, bin, 0.0);
        memcpy(table + 4 * bin, &of_bin, 4);
    }
}

static void write_signs(const terse_codec *sign, uint8_t *table, uint8_t *values, kept_values *kept, size_t k) {
    terse_codec_options plain = TERSE_CODEC_OPTIONS;
    plain.zero = TERSE_ZERO_PLUS;
    block_sum sum = {0};
    EACH_BLOCK {
        const float *c = next_block(kept, at, count);
        for (size_t i = 0; i < count; i++) sum.partial[i % 16] += fabs((double)c[i]);
        end_block(&sum, at, count);
        sign->encode(values + at / 8, c, count, &plain, 0, count);
    }
    const float mean = (float)(total(&sum) / (double)k);
    memcpy(table, &mean, 4);
}

static size_t write_halves(const terse_codec *f16, uint8_t *values, kept_values *kept, size_t k) {
    const terse_codec_options plain = TERSE_CODEC_OPTIONS;
    EACH_BLOCK {
        const size_t accepted = f16->encode(values + 2 * at, next_block(kept, at, count), count, &plain, 0, count);
        if (accepted < count) return at + accepted;
    }
    return k;
}

size_t top_k_write_values(const top_k_kernel *kernel, uint8_t *wire, const float *kept, const float *x, size_t n,
                          const terse_codec_options *o) {
    const top_k_wire parts = top_k_wire_of(n, o);
    kept_values source = {.values = kept, .x = x, .reader = terse_index_reader_at(wire + parts.indices, parts.layout)};
    uint8_t *const table = wire + parts.table, *const values = wire + parts.values;
    if (o->values == TERSE_VALUES_F16) return write_halves(kernel->f16, values, &source, o->k);
    if (o->values == TERSE_VALUES_2BIT) write_two_bits(table, values, &source, o->k);
    else write_signs(kernel->sign, table, values, &source, o->k);
    return o->k;
}

// Whether the table and the values are such as encoders write: finite, magnitudes not negative, pad bits 0.
static int values_are_good(const top_k_kernel *kernel, const uint8_t *wire, const top_k_wire *parts,
                           const terse_codec_options *o) {
    const size_t k = o->k;
    const uint8_t *const values = wire + parts->values;
    float value;
    for (size_t at = parts->table; at < parts->indices; at += 4) {
        memcpy(&value, wire + at, 4);
        if (value - value != 0.0f || (o->values == TERSE_VALUES_SIGN && signbit(value))) return 0;
    }
    switch (o->values) {
        case TERSE_VALUES_F32: {
            int good = 1;
            for (size_t j = 0; j < k; j++) memcpy(&value, values + 4 * j, 4), good &= value - value == 0.0f;
            return good;
        }
        case TERSE_VALUES_F16: return kernel->f16->is_good(values, k, o, 0, k);
        case TERSE_VALUES_2BIT: return k % 4 == 0 || !(values[k / 4] >> 2 * (k % 4));
        default: return k % 8 == 0 || !(values[k / 8] >> k % 8);
    }
}

static void read_values(const top_k_kernel *kernel, float *into, const uint8_t *wire, const top_k_wire *parts,
                        const terse_codec_options *o, size_t at, size_t count) {
    static const terse_codec_options once = TERSE_CODEC_OPTIONS;
    const uint8_t *const values = wire + parts->values;
    float table[4] = {0};
    memcpy(table, wire + parts->table, parts->indices - parts->table);
    switch (o->values) {
        case TERSE_VALUES_F32: memcpy(into, values + 4 * at, 4 * count); return;
        case TERSE_VALUES_F16:
            for (size_t i = 0; i < count; i++) into[i] = -0.0f;  // -0 + c = c, for both zeros too
            kernel->f16->decode_add(into, values + 2 * at, count, &once, 0, count);
            return;
        case TERSE_VALUES_2BIT:
            for (size_t i = 0; i < count; i++) into[i] = table[values[(at + i) / 4] >> 2 * (i % 4) & 3];
            return;
        default:
            for (size_t i = 0; i < count; i++) into[i] = values[(at + i) / 8] >> i % 8 & 1 ? table[0] : -table[0];
    }
}

terse_codec_status top_k_decode_add(const top_k_kernel *kernel, float *sum, const uint8_t *wire, size_t n,
                                    const terse_codec_options *o) {
    const top_k_wire parts = top_k_wire_of(n, o);
    const uint8_t *const indices = wire + parts.indices;
    const size_t k = o->k;
    size_t places[BLOCK];
    float kept[BLOCK];
    if (!terse_marks_are_good(indices, k, parts.layout) || !values_are_good(kernel, wire, &parts, o))
        return TERSE_CODEC_BAD_WIRE;
    size_t above = 0;  // what the next index is at least
    terse_index_reader reader = terse_index_reader_at(indices, parts.layout);
    EACH_BLOCK {
        terse_read_indices(&reader, places, count);
        for (size_t i = 0; i < count; i++) {
            if (places[i] < above || places[i] >= n) return TERSE_CODEC_BAD_WIRE;
            above = places[i] + 1;
        }
    }
    reader = terse_index_reader_at(indices, parts.layout);
    EACH_BLOCK {
        terse_read_indices(&reader, places, count);
        read_values(kernel, kept, wire, &parts, o, at, count);
        for (size_t i = 0; i < count; i++) sum[places[i]] += o->scale * kept[i];
    }
    return TERSE_CODEC_OK;
}

TOP_K_CODEC(terse_top_k_scalar, "scalar", top_k_scalar_kernel)
