// Which of n were chosen: k ascending indices, least significant bit first, filled up with 0 to a whole byte. Internal
// to the codecs that keep a few of many; no part of the ABI.
//
//   fixed        ceil(log2 n) bits each
//   elias-fano   l = floor(log2(n / k)) low bits each, then k + floor(n / 2^l) marks: of the j-th index i, bit
//                floor(i / 2^l) + j is 1. Or n marks, where these are fewer bits: of index i, bit i is 1
#ifndef TERSE_INDICES_H
#define TERSE_INDICES_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "terse/codecs.h"

// Bits of an index below n; n is at most 2^48.
static inline int terse_index_bits(size_t n) {
    int bits = 0;
    while ((uint64_t)1 << bits < n) bits++;
    return bits;
}

// Bytes of k indices below n; k is at most n.
static inline size_t terse_index_bytes(size_t k, size_t n) {
    return (size_t)(((uint64_t)k * (uint64_t)terse_index_bits(n) + 7) / 8);
}

static inline uint32_t terse_float_bits(const float *x) {
    uint32_t bits;
    memcpy(&bits, x, 4);
    return bits;
}

// Finite magnitudes are ordered as their bits are, and lie below infinity's.
enum { TERSE_MAGNITUDE = 0x7fffffff, TERSE_INFINITE = 0x7f800000 };

static inline uint32_t terse_magnitude_bits(const float *x) { return terse_float_bits(x) & TERSE_MAGNITUDE; }

// Where the bits of k indices are. k is at most n, so all of them are at most 48 k or 2 n.
typedef struct terse_index_layout {
    int low;                   // low bits of each index, side by side at the beginning
    unsigned step;             // how many places a mark moves up for each mark before it: 0 or 1
    uint64_t marks_at, marks;  // the first mark, in bits, and how many marks there are
    size_t bytes;
} terse_index_layout;

static inline terse_index_layout terse_index_layout_of(size_t k, size_t n, terse_indices indices) {
    if (indices == TERSE_INDICES_FIXED)
        return (terse_index_layout){terse_index_bits(n), 0, 0, 0, terse_index_bytes(k, n)};
    int low = 0;
    while (k && (uint64_t)k <= (uint64_t)n >> (low + 1)) low++;
    const uint64_t at = (uint64_t)k * (uint64_t)low, marks = (uint64_t)k + ((uint64_t)n >> low);
    if (n < at + marks) return (terse_index_layout){0, 0, 0, n, (size_t)(((uint64_t)n + 7) / 8)};
    return (terse_index_layout){low, 1, at, marks, (size_t)((at + marks + 7) / 8)};
}

// Writes the chosen in ascending order: an index, and its float. Where there are marks, all bytes of the indices are 0
// before.
typedef struct terse_chosen_writer {
    uint8_t *low, *values;  // values: NULL where they are not wanted
    uint64_t bits;          // not yet written, of the low bits
    int count, width;
    uint8_t *marks;  // NULL: none
    uint64_t mark;   // the place of a mark whose index has no high bits
    size_t mark_byte;
    unsigned step, mark_bits;  // mark_bits: not yet written, of mark_byte
} terse_chosen_writer;

// A writer of the chosen elements after the first `before` ones, which another thread writes. values: the place of k
// floats.
static inline terse_chosen_writer terse_chosen_writer_from(uint8_t *indices, uint8_t *values, terse_index_layout l,
                                                           size_t before) {
    const uint64_t bit = (uint64_t)before * (uint64_t)l.low, mark = l.marks_at + l.step * (uint64_t)before;
    uint8_t *const floats = values ? values + 4 * before : NULL, *const marks = l.marks ? indices : NULL;
    return (terse_chosen_writer){indices + bit / 8,        floats, 0, (int)(bit % 8), l.low, marks, mark,
                                 (size_t)(l.marks_at / 8), l.step, 0};
}

// A writer of all indices of fixed length, with their floats behind them.
static inline terse_chosen_writer terse_chosen_writer_at(uint8_t *wire, size_t k, size_t n) {
    return terse_chosen_writer_from(wire, wire + terse_index_bytes(k, n),
                                    terse_index_layout_of(k, n, TERSE_INDICES_FIXED), 0);
}

// Leaves less than a byte.
static inline void terse_write_whole_bytes(terse_chosen_writer *w) {
    for (; w->count >= 8; w->count -= 8, w->bits >>= 8) *w->low++ = (uint8_t)w->bits;
}

// Two threads may have marks in the same byte.
static inline void terse_write_marks(terse_chosen_writer *w) {
    if (w->mark_bits) __atomic_fetch_or(w->marks + w->mark_byte, (uint8_t)w->mark_bits, __ATOMIC_RELAXED);
    w->mark_bits = 0;
}

static inline void terse_choose(terse_chosen_writer *w, size_t index, const float *value) {
    if (w->marks) {
        const uint64_t place = w->mark + ((uint64_t)index >> w->width);
        w->mark += w->step;
        if (place / 8 != w->mark_byte) terse_write_marks(w), w->mark_byte = (size_t)(place / 8);
        w->mark_bits |= 1u << place % 8;
    }
    w->bits |= ((uint64_t)index & (((uint64_t)1 << w->width) - 1)) << w->count;
    w->count += w->width;
    if (w->width > 32) terse_write_whole_bytes(w);
    else if (w->count >= 32) {
        for (int byte = 0; byte < 4; byte++) w->low[byte] = (uint8_t)(w->bits >> 8 * byte);  // one store
        w->low += 4, w->bits >>= 32, w->count -= 32;
    }
    if (!w->values) return;
    memcpy(w->values, value, 4);
    w->values += 4;
}

static inline void terse_chosen_end(terse_chosen_writer *w) {
    terse_write_whole_bytes(w);
    terse_write_marks(w);
    if (w->count) *w->low = (uint8_t)(w->bits | (w->marks ? *w->low : 0));
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

// Reads indices of either kind, some at a time. There must be k marks: terse_marks_are_good.
typedef struct terse_index_reader {
    const uint8_t *indices;
    terse_index_layout layout;
    size_t next, word_at;  // the index that is read next; the byte behind the word of marks
    uint64_t word;         // of marks: those that are not read yet
} terse_index_reader;

// Up to 8 bytes from `at` on, of so many that there are.
static inline uint64_t terse_word_of(const uint8_t *bytes, size_t count, size_t at) {
    uint64_t word = 0;
    if (at + 8 <= count) memcpy(&word, bytes + at, 8);
    else
        for (size_t i = at; i < count; i++) word |= (uint64_t)bytes[i] << 8 * (i - at);
    return word;
}

static inline void terse_next_marks(terse_index_reader *r) {
    r->word = terse_word_of(r->indices, r->layout.bytes, r->word_at);
    r->word_at += 8;
}

static inline terse_index_reader terse_index_reader_at(const uint8_t *indices, terse_index_layout l) {
    terse_index_reader r = {indices, l, 0, (size_t)(l.marks_at / 8), 0};
    if (l.marks) terse_next_marks(&r), r.word = r.word >> l.marks_at % 8 << l.marks_at % 8;
    return r;
}

static inline void terse_read_indices(terse_index_reader *r, size_t *into, size_t count) {
    const terse_index_layout l = r->layout;
    const uint64_t mask = ((uint64_t)1 << l.low) - 1;
    for (size_t i = 0; i < count; i++, r->next++) {
        uint64_t high = 0, low = 0;
        if (l.marks) {
            while (!r->word) terse_next_marks(r);
            high = 8 * (uint64_t)(r->word_at - 8) + (uint64_t)__builtin_ctzll(r->word) - l.marks_at -
                   l.step * (uint64_t)r->next;
            r->word &= r->word - 1;
        }
        if (l.low) {
            const uint64_t bit = (uint64_t)r->next * (uint64_t)l.low;
            low = terse_word_of(r->indices, l.bytes, (size_t)(bit / 8)) >> bit % 8 & mask;
        }
        into[i] = (size_t)(high << l.low | low);
    }
}

// Whether k marks are 1, and no bit behind the marks.
static inline int terse_marks_are_good(const uint8_t *indices, size_t k, terse_index_layout l) {
    if (!l.marks) return 1;
    const unsigned used = (l.marks_at + l.marks) % 8;
    if (used && indices[l.bytes - 1] >> used) return 0;
    const size_t first = (size_t)(l.marks_at / 8);
    size_t count = (size_t)__builtin_popcountll((uint64_t)indices[first] >> l.marks_at % 8);
    for (size_t at = first + 1; at < l.bytes; at += 8)
        count += (size_t)__builtin_popcountll(terse_word_of(indices, l.bytes, at));
    return count == k;
}

#endif
