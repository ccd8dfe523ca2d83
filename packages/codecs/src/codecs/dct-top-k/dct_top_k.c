#include "dct_top_k.h"

#include <float.h>
#include <math.h>

#include "cosine.h"

void dct_basis_of(dct_basis *basis, size_t length) {
    size_t odd = length;
    while (odd % 2 == 0) odd /= 2;
    basis->length = length, basis->odd = odd;
    basis->first = sqrt(1.0 / (double)length), basis->other = sqrt(2.0 / (double)length);
    for (size_t t = 0; t <= odd; t++) basis->cosine[t] = dct_cosine(t, odd);
    for (size_t half = odd; half < length; half *= 2)
        for (size_t i = 0; i < half; i++) basis->cosine[half + 1 + i] = 1.0 / (2.0 * dct_cosine(2 * i + 1, 2 * half));
}

static size_t chunk_length(const terse_codec_options *o) { return o->dimensions == 2 ? o->block * o->block : o->block; }

static size_t bytes_of(size_t length, size_t k) { return terse_index_bytes(k, length) + 4 * k; }

dct_chunks dct_chunks_of(size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    const size_t length = chunk_length(options);
    return (dct_chunks){length,
                        options->k,
                        bytes_of(length, options->k),
                        n,
                        begin / length + (begin % length != 0),
                        end / length + (end % length != 0)};
}

terse_codec_status dct_top_k_check(size_t n, const terse_codec_options *o) {
    if (o->dimensions > 2 || o->block < 1 || o->block > (o->dimensions == 2 ? DCT_WIDEST : DCT_LONGEST))
        return TERSE_CODEC_BAD_CHOICE;
    if (o->k < 1 || o->k > chunk_length(o)) return TERSE_CODEC_BAD_K;
    return o->dimensions == 2 && n % chunk_length(o) ? TERSE_CODEC_BAD_SCALE_GROUPS : TERSE_CODEC_OK;
}

size_t dct_top_k_wire_bytes(size_t n, const terse_codec_options *options) {
    const size_t length = chunk_length(options), k = options->k, rest = n % length;
    return n / length * bytes_of(length, k) + bytes_of(rest, k < rest ? k : rest);
}

int dct_wire_is_good(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end) {
    const dct_chunks chunks = dct_chunks_of(n, options, begin, end);
    for (size_t chunk = chunks.begin; chunk < chunks.end; chunk++) {
        const size_t length = dct_chunk_length(&chunks, chunk), k = dct_kept(&chunks, length);
        terse_chosen_reader reader = terse_chosen_reader_at(wire + chunk * chunks.bytes, k, length);
        double sum = 0;
        size_t above = 0;  // what the next index is at least
        for (size_t j = 0; j < k; j++) {
            float value;
            const size_t index = terse_next_chosen(&reader, &value);
            if (index < above || index >= length) return 0;
            above = index + 1;
            sum += fabs((double)value);
        }
        if (!(sum <= FLT_MAX)) return 0;
    }
    return 1;
}

size_t dct_refused(const float *x, const dct_chunks *chunks, size_t chunk, size_t end) {
    const size_t begin = chunk * chunks->length, length = dct_chunk_length(chunks, chunk);
    size_t largest = begin;
    for (size_t i = begin; i < begin + length; i++) {
        if (x[i] - x[i] != 0.0f) return end;
        if (fabsf(x[i]) > fabsf(x[largest]) && i < end) largest = i;
    }
    return largest;
}

#define reductions (&terse_reductions_scalar)
enum { LANES = 1, INTS = 1, COMPARED = 1 };
typedef double lanes;
typedef int32_t ints;
#define plainer terse_dct_top_k_scalar
#include "dct_top_k_vector.h"

DCT_TOP_K(scalar)
