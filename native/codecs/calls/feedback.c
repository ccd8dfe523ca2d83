// Encoding with feedback: the error that a wire leaves is added to what is encoded next.
#include <stdlib.h>
#include <string.h>

#include "../../../packages/codecs/src/shared/overlap.h"
#include "../../../packages/codecs/src/shared/reductions/reductions.h"
#include "../../../packages/codecs/src/shared/scale-groups/scale_groups.h"
#include "calls.h"
#include "terse/parallel.h"
#include "terse/walk.h"

enum { PIECE = 1024 };  // elements, so few that the next ones are on their way from memory while these are computed

typedef float floats __attribute__((vector_size(16)));  // every processor has these
typedef uint32_t words __attribute__((vector_size(16)));

static inline floats floats_at(const float *x) {
    floats four;
    memcpy(&four, x, sizeof four);
    return four;
}

// sum = decay * sum + x for 32 elements; returns 0, and changes nothing, if a sum would not be finite: a finite number
// times 0 is 0, any other is NaN, whose bits are not those of a zero.
static inline __attribute__((always_inline)) int add_32(float *sum, const float *x, floats decay, const int decays) {
    floats sums[8];
    words seen = {0};
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; k++) {
        const floats before = floats_at(sum + 4 * k);
        sums[k] = (decays ? decay * before : before) + floats_at(x + 4 * k);
        seen |= (words)(sums[k] * 0.0f);
    }
    seen &= 0x7fffffffu;
    if (seen[0] | seen[1] | seen[2] | seen[3]) return 0;
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; k++) memcpy(sum + 4 * k, sums + k, sizeof sums[k]);
    return 1;
}

// sum = decay * sum + x; returns n. If a sum would not be finite, its float would be lost: then its index is returned,
// and the elements from there on keep their values.
static inline __attribute__((always_inline)) size_t add_all(float *sum, const float *x, float decay, size_t n,
                                                            const int decays) {
    const floats each = {decay, decay, decay, decay};
    size_t i = 0;
    for (; i + TERSE_ROUND <= n; i += TERSE_ROUND) {
        terse_prefetch(sum + i + TERSE_WALK_GROUP);
        terse_prefetch(x + i + TERSE_WALK_GROUP);
        if (!add_32(sum + i, x + i, each, decays)) break;
        if (!add_32(sum + i + 32, x + i + 32, each, decays)) {
            i += 32;
            break;
        }
    }
    for (; i < n; i++) {
        const float added = decay * sum[i] + x[i];
        if (!isfinite(added)) return i;
        sum[i] = added;
    }
    return n;
}

static size_t add(float *sum, const float *x, float decay, size_t n) {
    return decay == 1 ? add_all(sum, x, decay, n, 0) : add_all(sum, x, decay, n, 1);
}

typedef struct feedback {
    const terse_codec *codec;
    uint8_t *wire;
    const float *x;               // what is added to the error; NULL:
    const uint8_t *const *wires;  // the sum of so many wires
    size_t count;
    float *error;
    size_t n, piece;   // piece: elements that one step of a walk processes
    double *measures;  // of the pieces, for prepare_measured; NULL: none
    const terse_codec_options *options;
    int adds, encodes;  // what a step does
    atomic_int has_bad_wire;
    atomic_size_t refused;  // the first element; n: none
    atomic_size_t parts;
    struct {
        size_t begin, added, encoded;
    } done[TERSE_PARALLEL_MAX_PARTS];  // the ends of what each part has done
} feedback;

static void subtract(const feedback *f, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) f->error[i] = (f->error[i] - f->x[i]) / f->options->decay;
}

static void subtract_part(void *context, size_t begin, size_t end) { subtract(context, begin, end); }

static void take_away(const feedback *f, float times, size_t begin, size_t end) {
    terse_codec_options options = *f->options;
    options.scale = -times;
    f->codec->decode_add(f->error, f->wire, f->n, &options, begin, end);
}

// The first refused element of a piece of which the sum of element `added` is not finite, and the sums before it are:
// that element, unless the codec refuses one of an earlier scale group.
static __attribute__((noinline)) size_t first_refused(const feedback *f, size_t at, size_t added) {
    const size_t block = f->options->block, end = block ? added / block * block : added;
    const size_t accepted = at < end ? f->codec->encode(f->wire, f->error, f->n, f->options, at, end) : end;
    return accepted < end ? accepted : added;
}

// The same for a walk that has added and not encoded. Codecs without scales name what is not finite first.
static size_t first_refused_of_all(const feedback *f, size_t added) {
    if (!f->codec->blocks_in_encode) return added;
    const size_t group = terse_scale_group_of(added, f->options);
    terse_codec_options before = *f->options;
    if (before.segments) before.segment_count = group;
    size_t refused = added;
    terse_encode_checked(f->codec, f->wire, f->error, terse_scale_group_begin(group, f->n, f->options), &before,
                         &refused);
    return refused;
}

// error = decay * error + scale * decode(wires[0]) + ...
static void add_wires(feedback *f, size_t begin, size_t end) {
    for (size_t i = begin; f->options->decay != 1 && i < end; i++) f->error[i] *= f->options->decay;
    for (size_t r = 0; r < f->count; r++)
        if (f->codec->decode_add(f->error, f->wires[r], f->n, f->options, begin, end) != TERSE_CODEC_OK)
            atomic_store(&f->has_bad_wire, 1);
}

// One piece after the other, so that it is still in the cache when it is encoded and subtracted.
static void pieces_part(void *context, size_t begin, size_t end) {
    feedback *f = context;
    const size_t part = atomic_fetch_add(&f->parts, 1);
    size_t added = begin, encoded = begin;
    while (encoded < end) {
        const size_t to = end - encoded < f->piece ? end : encoded + f->piece;
        if (!f->adds) added = to;
        else if (f->x) added += add(f->error + added, f->x + added, f->options->decay, to - added);
        else add_wires(f, added, to), added = to;
        if (added < to) {
            terse_lower(&f->refused, f->encodes ? first_refused(f, encoded, added) : added);
            break;
        }
        if (f->measures)
            f->measures[encoded / TERSE_MEASURED] = f->codec->measure(f->wire, f->error, f->n, f->options, encoded, to);
        if (f->encodes) {
            const size_t accepted = f->codec->encode(f->wire, f->error, f->n, f->options, encoded, to);
            if (accepted < to) {
                terse_lower(&f->refused, accepted);
                break;
            }
            take_away(f, 1.0f, encoded, to);
        }
        encoded = to;
    }
    f->done[part].begin = begin, f->done[part].added = added, f->done[part].encoded = encoded;
}

// Returns n. If an element is refused, undoes its changes, but for a sum's, and returns the index of the first such
// element.
static size_t walk_pieces(feedback *f, int adds) {
    f->adds = adds;
    atomic_store(&f->parts, 0);
    terse_parallel(f->n, f->piece, pieces_part, f);
    size_t refused = atomic_load(&f->refused);
    if (refused < f->n && adds && !f->encodes) refused = first_refused_of_all(f, refused);
    for (size_t part = 0; f->x && refused < f->n && part < atomic_load(&f->parts); part++) {
        if (f->encodes) take_away(f, -1.0f, f->done[part].begin, f->done[part].encoded);
        if (adds) subtract(f, f->done[part].begin, f->done[part].added);
    }
    return refused;
}

// The elements of a piece that shares no scale with another one; 0: there are no such pieces. A piece of small blocks
// is a whole number of them, which begins at a multiple of 64.
static size_t own_piece(const terse_codec *codec, const terse_codec_options *o) {
    if (codec->whole || o->units) return 0;
    if (!codec->prepare && !(codec->takes & TERSE_TAKES_BLOCK)) return PIECE;
    if (!o->block || o->block > codec->blocks_in_encode) return 0;
    size_t piece = o->block;
    while (piece % 64) piece *= 2;
    if (piece > codec->blocks_in_encode) return 0;
    return piece < PIECE ? PIECE / piece * piece : piece;
}

// If a piece shares no scale with another one, it is added, encoded and subtracted at once. If all elements share one
// scale, it is computed between the addition and the rest, from what was measured of each piece that was added.
// Returns n, or the first refused element, after which the changes are undone, but for a sum's.
static size_t feed_back(feedback *f) {
    const terse_codec *codec = f->codec;
    const terse_codec_options *o = f->options;
    const size_t n = f->n, own = own_piece(codec, o);
    f->piece = own ? own : !f->x && n && terse_is_decoded_whole(codec) ? n : PIECE;
    f->encodes = own != 0;
    const int prepared = !own && codec->prepare && !codec->whole && !o->unscaled && !o->block && !o->segments;
    double *const measures = prepared && codec->measure && !o->hold
                                 ? malloc((n / TERSE_MEASURED + 1) * sizeof *measures)
                                 : NULL;
    if (measures) f->measures = measures, f->piece = TERSE_MEASURED;
    size_t refused = walk_pieces(f, 1);
    const int goes_on = refused == n && !f->encodes && !atomic_load(&f->has_bad_wire);
    if (measures && goes_on) refused = codec->prepare_measured(f->wire, f->error, n, o, measures);
    free(measures);
    f->measures = NULL, f->piece = PIECE;
    if (!goes_on) return refused;
    if (prepared) {
        if (!measures) refused = codec->prepare(f->wire, f->error, n, o);
        if (refused == n) f->encodes = 1, refused = walk_pieces(f, 0);
    } else if (terse_encode_checked(codec, f->wire, f->error, n, o, &refused) == TERSE_CODEC_OK) {
        terse_codec_options back = *o;
        back.scale = -1.0f;
        terse_decode_checked(codec, f->error, f->wire, n, &back, 0);
        return n;
    }
    if (refused < n && f->x) terse_parallel(n, CUT, subtract_part, f);
    return refused;
}

terse_codec_status terse_codec_encode_with_feedback(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                                    const float *x, float *error, size_t n,
                                                    const terse_codec_options *o, size_t *bad) {
    const terse_codec_status status = terse_check_encoding(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!(o->decay > 0 && o->decay <= 1)) return TERSE_CODEC_BAD_DECAY;
    if ((uintptr_t)x % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    if (terse_overlap(error, n * sizeof(float), x, n * sizeof(float)) ||
        terse_overlap(wire, wire_bytes, x, n * sizeof(float)))
        return TERSE_CODEC_OVERLAP;
    if (terse_meets_options(error, n * sizeof(float), n, o)) return TERSE_CODEC_OVERLAP;

    feedback f = {.codec = codec, .wire = wire, .x = x, .error = error, .n = n, .options = o, .refused = n};
    size_t refused = feed_back(&f);
    if (refused == n) return TERSE_CODEC_OK;
    // What is not finite in x is said first, wherever it is.
    const size_t not_finite = terse_first_not_finite(x, n);
    if (not_finite < n) refused = not_finite;
    return terse_refusal(refused, o->decay * error[refused] + x[refused], bad);
}

terse_codec_status terse_codec_encode_sum_with_feedback(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                                        const uint8_t *const *wires, size_t count, float *error,
                                                        size_t n, const terse_codec_options *o, size_t *bad) {
    const terse_codec_status status = terse_check_encoding(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!(o->decay > 0 && o->decay <= 1)) return TERSE_CODEC_BAD_DECAY;
    if (!isfinite(o->scale)) return TERSE_CODEC_BAD_SCALE;
    if (terse_meets_options(error, n * sizeof(float), n, o)) return TERSE_CODEC_OVERLAP;
    for (size_t r = 0; r < count; r++)
        if (terse_overlap(error, n * sizeof(float), wires[r], wire_bytes) ||
            terse_overlap(wire, wire_bytes, wires[r], wire_bytes))
            return TERSE_CODEC_OVERLAP;

    for (size_t r = 0; r < count; r++)
        if (!terse_is_good(codec, wires[r], n, o)) return TERSE_CODEC_BAD_WIRE;
    feedback f = {.codec = codec,
                  .wire = wire,
                  .wires = wires,
                  .count = count,
                  .error = error,
                  .n = n,
                  .options = o,
                  .refused = n};
    const size_t refused = feed_back(&f);
    if (atomic_load(&f.has_bad_wire)) return TERSE_CODEC_BAD_WIRE;
    return refused == n ? TERSE_CODEC_OK : terse_refusal(refused, error[refused], bad);
}
