// Which of n were chosen: ascending indices of ceil(log2 n) bits, one after the other, least significant bit first,
// filled up with 0 to a whole byte. Internal to the codecs that keep a few of many; no part of the ABI.
#ifndef TERSE_INDICES_H
#define TERSE_INDICES_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Bits of an index below n; n is at most 2^48.
static inline int terse_index_bits(size_t n) {
    int bits = 0;
    while ((uint64_t)1 << bits < n) bits++;
    return bits;
}

// Bytes of k indices below n; k is at most n.
static inline size_t terse_index_bytes(size_t k, size_t n) { return (size_t)(((uint64_t)k * (uint64_t)terse_index_bits(n) + 7) / 8); }

static inline uint32_t terse_float_bits(const float *x) {
    uint32_t bits;
    memcpy(&bits, x, 4);
    return bits;
}

// Finite magnitudes are ordered as their bits are, and lie below infinity's.
enum { TERSE_MAGNITUDE = 0x7fffffff, TERSE_INFINITE = 0x7f800000 };

static inline uint32_t terse_magnitude_bits(const float *x) { return terse_float_bits(x) & TERSE_MAGNITUDE; }

// Writes the chosen in ascending order: an index, and its float behind all indices.
typedef struct terse_chosen_writer {
    uint8_t *indices, *values;
    uint64_t bits;  // not yet written
    int count, width;
} terse_chosen_writer;

// A writer of the chosen elements after the first `before` ones, which another thread writes.
static inline terse_chosen_writer terse_chosen_writer_from(uint8_t *wire, size_t k, size_t n, size_t before) {
    const int width = terse_index_bits(n);
    const uint64_t bit = (uint64_t)before * (uint64_t)width;
    return (terse_chosen_writer){wire + bit / 8, wire + terse_index_bytes(k, n) + 4 * before, 0, (int)(bit % 8), width};
}

static inline terse_chosen_writer terse_chosen_writer_at(uint8_t *wire, size_t k, size_t n) {
    return terse_chosen_writer_from(wire, k, n, 0);
}

// Leaves less than a byte.
static inline void terse_write_whole_bytes(terse_chosen_writer *w) {
    for (; w->count >= 8; w->count -= 8, w->bits >>= 8) *w->indices++ = (uint8_t)w->bits;
}

static inline void terse_choose(terse_chosen_writer *w, size_t index, const float *value) {
    w->bits |= (uint64_t)index << w->count;
    w->count += w->width;
    if (w->width > 32) terse_write_whole_bytes(w);
    else if (w->count >= 32) {
        for (int byte = 0; byte < 4; byte++) w->indices[byte] = (uint8_t)(w->bits >> 8 * byte);  // one store
        w->indices += 4, w->bits >>= 32, w->count -= 32;
    }
    memcpy(w->values, value, 4);
    w->values += 4;
}

static inline void terse_chosen_end(terse_chosen_writer *w) {
    terse_write_whole_bytes(w);
    if (w->count) *w->indices = (uint8_t)w->bits;
}

typedef struct terse_chosen_reader {
    const uint8_t *indices, *values;
    uint64_t bits;
    int count, width;
} terse_chosen_reader;

static inline terse_chosen_reader terse_chosen_reader_at(const uint8_t *wire, size_t k, size_t n) {
    return (terse_chosen_reader){wire, wire + terse_index_bytes(k, n), 0, 0, terse_index_bits(n)};
}

static inline size_t terse_next_chosen(terse_chosen_reader *r, float *value) {
    for (; r->count < r->width; r->count += 8) r->bits |= (uint64_t)*r->indices++ << r->count;
    const size_t index = (size_t)(r->bits & (((uint64_t)1 << r->width) - 1));
    r->bits >>= r->width;
    r->count -= r->width;
    memcpy(value, r->values, 4);
    r->values += 4;
    return index;
}

#endif
