// dct-top-k: of the orthonormal DCT-II of each chunk, the k coefficients of largest magnitude, with their places
// (DeMo).
//
//   chunks    block floats, the last may be shorter; in two dimensions block * block, one square after the other, row
//             by row
//   a chunk   indices of k coefficients, ascending, ceil(log2 chunk) bits each, to whole bytes; then k fp32 (fewer in a
//             short chunk)
//
// The transform of c numbers x, in fp64 and the same bits everywhere (Lee 1984):
//
//   X[j] = sum x[i] cos(pi (2 i + 1) j / 2 c)
//
//   c odd     the sum itself, i = 0, 1, ... from 0
//   c even    A = transform of x[i] + x[c-1-i],                                     i < c/2
//             B = transform of (x[i] - x[c-1-i]) / (2 cos(pi (2 i + 1) / 2 c)),     i < c/2
//             X[2 j] = A[j],  X[2 j + 1] = B[j] + B[j+1], the last one B[c/2-1]
//
// then times sqrt(1/c) for j = 0 and sqrt(2/c) beyond; rows first, then columns. The inverse is the transpose, step by
// step backwards. The magnitudes of a chunk's coefficients must add up to a finite fp32, because the sum bounds the
// decoded floats. Encoders and decoders refuse larger ones.
//
// No memory is allocated; a call takes up to 256 KiB of stack.
#ifndef TERSE_DCT_TOP_K_H
#define TERSE_DCT_TOP_K_H
#include "../../shared/indices/indices.h"
#include "terse/codecs.h"

extern const terse_codec terse_dct_top_k_scalar, terse_dct_top_k_avx2, terse_dct_top_k_avx512, terse_dct_top_k_neon;

enum {
    DCT_TOP_K_TAKES = TERSE_TAKES_BLOCK | TERSE_TAKES_K | TERSE_TAKES_DIMENSIONS,
    DCT_LONGEST = 4096,  // side of a chunk in one dimension
    DCT_WIDEST = 128,    // and in two
};

// The constants of a transform of one length.
typedef struct dct_basis {
    size_t length;
    size_t odd;                      // length without its factors of two
    double first, other;             // sqrt(1 / length), sqrt(2 / length)
    double cosine[DCT_LONGEST + 2];  // t <= odd: cos(pi t / 2 odd). h + 1 + i, h = odd, 2 odd, ... < length: 1 / (2
                                     // cos(pi (2 i + 1) / 4 h))
} dct_basis;
void dct_basis_of(dct_basis *basis, size_t length);

// Numbered from 0; the last one may be short.
typedef struct dct_chunks {
    size_t length, k, bytes;  // of every chunk but a short one
    size_t n, begin, end;     // floats; chunks [begin, end) are those that begin in the range of a call
} dct_chunks;
dct_chunks dct_chunks_of(size_t n, const terse_codec_options *options, size_t begin, size_t end);

static inline size_t dct_chunk_length(const dct_chunks *c, size_t chunk) {
    return c->n - chunk * c->length < c->length ? c->n - chunk * c->length : c->length;
}
static inline size_t dct_kept(const dct_chunks *c, size_t length) { return c->k < length ? c->k : length; }

terse_codec_status dct_top_k_check(size_t n, const terse_codec_options *options);
size_t dct_top_k_wire_bytes(size_t n, const terse_codec_options *options);

// Are all chunks of the range good?
int dct_wire_is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end);

// The element to report if a chunk's coefficients do not fit: the largest |x| before `end`. Returns `end` if an element
// of the chunk at or after `end` is not finite: the call that encodes that range reports it.
size_t dct_refused(const float *x, const dct_chunks *chunks, size_t chunk, size_t end);

#endif
