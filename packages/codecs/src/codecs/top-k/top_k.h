// top-k: the k floats of largest magnitude, with their places. The wire of n floats:
//
//   table     of values in 2 bits four fp32, of signs one, otherwise none
//   indices   k, ascending: ceil(log2 n) bits each, or Elias-Fano's (shared/indices/indices.h), to whole bytes
//   values    k: fp32, halves, 2 bits or signs, to whole bytes
//
// Selection, without sorting: the bits of a magnitude order like the magnitude, so the k-th largest is a number of 31
// bits, found by counting how many floats lie in each of 2048 equal ranges of it, then in 2048 parts of that range
// which holds the k-th, until a range is one number. A sample says where to look first; where it misled, one looks
// everywhere. Where k is a small part of n, what may be chosen is copied in one pass over x, and the rest is done among
// the copies.
#ifndef TERSE_TOP_K_H
#define TERSE_TOP_K_H
#include "../../shared/also_on_device.h"
#include "../../shared/indices/indices.h"
#include "terse/codecs.h"
#include "terse/walk.h"

extern const terse_codec terse_top_k_scalar, terse_top_k_avx2, terse_top_k_avx512, terse_top_k_neon;

enum {
    TOP_K_TAKES = TERSE_TAKES_K | TERSE_TAKES_INDICES | TERSE_TAKES_VALUES,
    TOP_K_RANGE_BITS = 11,
    TOP_K_RANGES = 1 << TOP_K_RANGE_BITS,
};

// Magnitudes in sight: range r holds those from low + (r << shift) to low + (r + 1 << shift), as bits.
typedef struct top_k_sight {
    uint32_t low;
    int shift;
    uint32_t end;   // behind the last range, at most infinity's bits
    size_t beyond;  // how many magnitudes are `end` or more
    size_t in[TOP_K_RANGES];
} top_k_sight;

// Which elements are chosen: magnitudes above `least`, and the first `ties` elements that equal it.
typedef struct top_k_choice {
    terse_chosen_writer writer;
    const float *x;
    uint32_t least;
    size_t ties, left;
} top_k_choice;

// The sample: a 64th of n, 2^16 at most, some neighbours at a place of each stretch.
enum { TOP_K_NEIGHBOURS = 4 };
static inline size_t top_k_sampled_places(size_t n) { return (n / 64 < 1 << 16 ? n / 64 : 1 << 16) / TOP_K_NEIGHBOURS; }

// The first of some neighbours in stretch i: not always the same place in it, as floats may have a period.
TERSE_ALSO_ON_DEVICE static inline size_t top_k_sampled(size_t stride, size_t neighbours, size_t i) {
    const uint64_t part = (uint32_t)i * 2654435761u;  // of 2^32, spread by the golden ratio
    return i * stride + (size_t)(part * (stride - neighbours + 1) >> 32);
}

// What is copied of a segment: in order, a page after the other.
enum { TOP_K_PAGES = 4, TOP_K_PAGE = TERSE_WALK_GROUP / TOP_K_PAGES, TOP_K_SEGMENT = TERSE_WALK_GROUP };
typedef struct top_k_segment {
    uint32_t most;  // at least the largest magnitude there is
    size_t count[TOP_K_PAGES];
    float values[TOP_K_PAGES][TOP_K_PAGE];
    uint16_t places[TOP_K_PAGES][TOP_K_PAGE];  // in the segment
} top_k_segment;

// What differs between implementations. The first two work on the elements [begin, end) of x.
typedef struct top_k_kernel {
    // Counts into the sight. False where a float is NaN or infinite. At most 2^30 elements.
    int (*count)(top_k_sight *sight, const float *x, size_t begin, size_t end);
    void (*choose)(top_k_choice *choice, size_t begin, size_t end);
    // Copies those of n elements, TOP_K_SEGMENT at most, whose magnitude is `least` or more.
    void (*copy)(top_k_segment *to, const float *x, size_t n, uint32_t least);
    const terse_codec *f16, *sign;  // of the kept values
} top_k_kernel;
extern const top_k_kernel top_k_scalar_kernel;

terse_codec_status top_k_check(size_t n, const terse_codec_options *options);
size_t top_k_wire_bytes(size_t n, const terse_codec_options *options);
size_t top_k_encode(const top_k_kernel *kernel, uint8_t *wire, const float *x, size_t n,
                    const terse_codec_options *options);
terse_codec_status top_k_decode_add(const top_k_kernel *kernel, float *sum, const uint8_t *wire, size_t n,
                                    const terse_codec_options *options);

// Where the parts of a wire begin, and its bytes.
typedef struct top_k_wire {
    terse_index_layout layout;
    size_t table, indices, values, bytes;
} top_k_wire;
static inline top_k_wire top_k_wire_of(size_t n, const terse_codec_options *o) {
    const size_t k = o->k;
    const terse_values kind = o->values;
    const terse_index_layout layout = terse_index_layout_of(k, n, o->indices);
    const size_t table = kind == TERSE_VALUES_2BIT   ? 16
                         : kind == TERSE_VALUES_SIGN ? 4
                                                     : 0,
                 values = table + layout.bytes;
    const size_t of_values = kind == TERSE_VALUES_F32    ? 4 * k
                             : kind == TERSE_VALUES_F16  ? 2 * k
                             : kind == TERSE_VALUES_2BIT ? k / 4 + (k % 4 != 0)
                                                         : k / 8 + (k % 8 != 0);
    return (top_k_wire){layout, 0, table, values, values + of_values};
}

// Writes the table and the values, behind indices that are written. kept: the k values; NULL: they are read from x.
// Returns k, or which of the kept values it cannot write.
size_t top_k_write_values(const top_k_kernel *kernel, uint8_t *wire, const float *kept, const float *x, size_t n,
                          const terse_codec_options *options);

// The table of an implementation, from its kernel.
#define TOP_K_CODEC(symbol, by, kernel)                                                                           \
    static size_t encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, size_t begin,     \
                         size_t end) {                                                                            \
        return (void)begin, (void)end, top_k_encode(&kernel, wire, x, n, o);                                      \
    }                                                                                                             \
    static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o, \
                                         size_t begin, size_t end) {                                              \
        return (void)begin, (void)end, top_k_decode_add(&kernel, sum, wire, n, o);                                \
    }                                                                                                             \
    const terse_codec symbol = {                                                                                  \
        .name = "top-k",                                                                                          \
        .implementation = by,                                                                                     \
        .takes = TOP_K_TAKES,                                                                                     \
        .whole = 1,                                                                                               \
        .check = top_k_check,                                                                                     \
        .wire_bytes = top_k_wire_bytes,                                                                           \
        .encode = encode,                                                                                         \
        .decode_add = decode_add,                                                                                 \
    };

static inline void top_k_count_one(top_k_sight *sight, uint32_t magnitude) {
    sight->in[(magnitude - sight->low) >> sight->shift]++;
}

static inline void top_k_copy_one(top_k_segment *to, const float *x, size_t i) {
    const size_t page = i / TOP_K_PAGE, at = to->count[page]++;
    to->values[page][at] = x[i], to->places[page][at] = (uint16_t)i;
}

// Walks four pages in turn. round(context, x) returns one bit per element of 64: 1 if it is copied. The rest of a page
// is scalar.
static inline __attribute__((always_inline)) void top_k_copy_by_rounds(top_k_segment *to, const float *x, size_t n,
                                                                       uint32_t least,
                                                                       uint64_t (*round)(void *context, const float *x),
                                                                       void *context) {
    memset(to->count, 0, sizeof to->count);
    for (size_t at = 0; at < TOP_K_PAGE; at += TERSE_ROUND)
        for (size_t page = 0; page < TOP_K_PAGES; page++) {
            const size_t first = page * TOP_K_PAGE + at;
            if (first + TERSE_ROUND > n) break;
            for (uint64_t copied = round(context, x + first); copied; copied &= copied - 1)
                top_k_copy_one(to, x, first + (size_t)__builtin_ctzll(copied));
        }
    for (size_t i = n / TERSE_ROUND * TERSE_ROUND; i < n; i++) {
        const uint32_t magnitude = terse_magnitude_bits(x + i);
        to->most = magnitude > to->most ? magnitude : to->most;
        if (magnitude >= least) top_k_copy_one(to, x, i);
    }
}

// For an element whose magnitude is `least` or more.
static inline void top_k_choose_one(top_k_choice *choice, size_t i) {
    if (terse_magnitude_bits(choice->x + i) == choice->least) {
        if (choice->ties == 0) return;
        choice->ties--;
    }
    terse_choose(&choice->writer, i, choice->x + i);
    choice->left--;
}

#endif
