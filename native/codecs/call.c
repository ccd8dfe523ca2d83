// The public calls: they check the arguments, then call into a codec's table.
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../packages/codecs/src/shared/reductions/reductions.h"
#include "../../packages/codecs/src/shared/overlap.h"
#include "../../packages/codecs/src/shared/scale-groups/scale_groups.h"
#include "terse/codecs.h"
#include "terse/parallel.h"
#include "terse/walk.h"

const char *terse_codec_sentence(terse_codec_status status) {
    switch (status) {
        case TERSE_CODEC_OK: return "All is well.";
        case TERSE_CODEC_UNKNOWN: return "No codec has this name.";
        case TERSE_CODEC_UNAVAILABLE: return "This codec has no such implementation, or this machine cannot run it.";
        case TERSE_CODEC_BAD_RANKS: return "A vote takes 1 to 1024 ranks, not all of them absent.";
        case TERSE_CODEC_BAD_ABI:
            return "The options are of another version of terse/codecs.h than this library: rebuild what calls it, and "
                   "begin with TERSE_CODEC_OPTIONS.";
        case TERSE_CODEC_BAD_LENGTH:
            return "The wire does not have the bytes that so many floats take: ask terse_codec_wire_bytes. No vector "
                   "has more than 2^48.";
        case TERSE_CODEC_OVERLAP: return "Buffers of one call overlap: give each its own memory.";
        case TERSE_CODEC_MISALIGNED: return "A float pointer is no multiple of 4.";
        case TERSE_CODEC_NOT_FINITE: return "The floats hold a NaN or an infinity.";
        case TERSE_CODEC_DOES_NOT_FIT: return "The floats hold a number that this codec cannot write.";
        case TERSE_CODEC_BAD_WIRE:
            return "No encoder writes such a wire: it was damaged, or written with other options.";
        case TERSE_CODEC_NOT_TAKEN: return "An option is set that this codec does not take.";
        case TERSE_CODEC_BAD_ZERO:
            return "The sign of an exact zero, or of a tie, must be set: TERSE_ZERO_MINUS or TERSE_ZERO_PLUS.";
        case TERSE_CODEC_BAD_BITS: return "This codec does not write that many bits per float.";
        case TERSE_CODEC_BAD_WIDTH:
            return "This codec does not know fields of that width, or they are narrower than its bits.";
        case TERSE_CODEC_TOO_MANY_RANKS:
            return "So many ranks times so many levels do not fit the field: ranks * (2^bits - 1), or ranks * 2 * "
                   "side, must be at most 2^width - 1. Take wider fields or fewer bits.";
        case TERSE_CODEC_BAD_SCALE_GROUPS:
            return "Scales go by block, or by segments, or by neither; segments are ends that rise to the number of "
                   "floats, units one per scale group, and squares of a transform whole.";
        case TERSE_CODEC_BAD_K: return "k must be at least 1 and at most the number of floats that it chooses among.";
        case TERSE_CODEC_BAD_INDEX: return "index must be a multiple of 64.";
        case TERSE_CODEC_BAD_SCALE:
            return "The scale must be finite, and units not negative and so small that the largest field is finite.";
        case TERSE_CODEC_BAD_CHOICE:
            return "An option has a value that this codec does not know: one of unscaled, levels, dimensions, clip, "
                   "indices, values, or of a block, ranks or units beside them.";
        case TERSE_FRAME_NOT_A_FRAME: return "These bytes are not a frame: they do not begin with \"TERS\".";
        case TERSE_FRAME_OTHER_VERSION: return "The frame is of another version than this library reads.";
        case TERSE_FRAME_CUT_SHORT: return "The frame is cut short: it says that it has more bytes than there are.";
        case TERSE_FRAME_DAMAGED: return "The frame is damaged: its checksum is not that of its bytes.";
        case TERSE_FRAME_BAD_HEADER: return "The frame's checksum is right, and its header says what no writer writes.";
        case TERSE_CODEC_BAD_DECAY:
            return "The decay of an error must be more than 0 and at most 1: begin with TERSE_CODEC_OPTIONS, where it "
                   "is 1.";
        case TERSE_FRAME_NO_ROOM:
            return "The frame has more segments than there is room for: read again with room for "
                   "options.segment_count.";
    }
    return "This status is not one of terse_codec_status.";
}

static terse_codec_status check_scale_groups(size_t n, const terse_codec_options *o) {
    if (!o->segments) return o->segment_count ? TERSE_CODEC_BAD_SCALE_GROUPS : TERSE_CODEC_OK;
    if (o->block) return TERSE_CODEC_BAD_SCALE_GROUPS;
    size_t begin = 0;
    for (size_t s = 0; s < o->segment_count; s++) {
        if (o->segments[s] < begin) return TERSE_CODEC_BAD_SCALE_GROUPS;
        begin = o->segments[s];
    }
    return begin == n ? TERSE_CODEC_OK : TERSE_CODEC_BAD_SCALE_GROUPS;
}

static terse_codec_status check(const terse_codec *codec, size_t n, const terse_codec_options *o) {
    if (o->size != sizeof *o) return TERSE_CODEC_BAD_ABI;
    const uint32_t set = (o->hold ? TERSE_TAKES_HOLD : 0) | (o->block ? TERSE_TAKES_BLOCK : 0) |
                         (o->segments || o->segment_count ? TERSE_TAKES_SEGMENTS : 0) |
                         (o->bits ? TERSE_TAKES_BITS : 0) | (o->width || o->ranks > 1 ? TERSE_TAKES_FIELDS : 0) |
                         (o->unscaled ? TERSE_TAKES_UNSCALED : 0) | (o->units ? TERSE_TAKES_UNSCALED : 0) |
                         (o->levels ? TERSE_TAKES_LEVELS : 0) | (o->dimensions ? TERSE_TAKES_DIMENSIONS : 0) |
                         (o->side ? TERSE_TAKES_SIDE : 0) | (o->k ? TERSE_TAKES_K : 0) |
                         (o->clip != 0 ? TERSE_TAKES_CLIP : 0) | (o->indices ? TERSE_TAKES_INDICES : 0) |
                         (o->values ? TERSE_TAKES_VALUES : 0);
    if (set & ~codec->takes) return TERSE_CODEC_NOT_TAKEN;
    if (n > (size_t)1 << 48) return TERSE_CODEC_BAD_LENGTH;
    const terse_codec_status status = check_scale_groups(n, o);
    return status != TERSE_CODEC_OK || !codec->check ? status : codec->check(n, o);
}

// Whether what a call writes shares memory with what its options point to.
static int meets_options(const void *written, size_t bytes, size_t n, const terse_codec_options *o) {
    return (o->hold && terse_overlap(written, bytes, o->hold, n / 8 + (n % 8 != 0))) ||
           (o->units && terse_overlap(written, bytes, o->units, o->unit_count * sizeof(float)));
}

static terse_codec_status check_buffers(const terse_codec *codec, const uint8_t *wire, size_t wire_bytes,
                                        const float *x, size_t n, const terse_codec_options *o) {
    const terse_codec_status status = check(codec, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (codec->wire_bytes(n, o) != wire_bytes) return TERSE_CODEC_BAD_LENGTH;
    if ((uintptr_t)x % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    if (terse_overlap(wire, wire_bytes, x, n * sizeof(float))) return TERSE_CODEC_OVERLAP;
    return meets_options(wire, wire_bytes, n, o) ? TERSE_CODEC_OVERLAP : TERSE_CODEC_OK;
}

terse_codec_status terse_codec_wire_bytes(const terse_codec *codec, size_t n, const terse_codec_options *o,
                                          size_t *bytes) {
    const terse_codec_status status = check(codec, n, o);
    if (status == TERSE_CODEC_OK) *bytes = codec->wire_bytes(n, o);
    return status;
}

static terse_codec_status check_encoding(const terse_codec *codec, const terse_codec_options *o) {
    if (codec->takes & TERSE_TAKES_ZERO && o->zero != TERSE_ZERO_MINUS && o->zero != TERSE_ZERO_PLUS)
        return TERSE_CODEC_BAD_ZERO;
    if (codec->takes & TERSE_TAKES_RANDOM && o->index % 64) return TERSE_CODEC_BAD_INDEX;
    return TERSE_CODEC_OK;
}

terse_codec_status terse_codec_scales(const terse_codec *codec, float *scales, size_t count, const float *x, size_t n,
                                      const terse_codec_options *o, size_t *bad) {
    const terse_codec_status status = check(codec, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!codec->scales) return TERSE_CODEC_NOT_TAKEN;
    if (count != terse_scale_group_count(n, o)) return TERSE_CODEC_BAD_LENGTH;
    if ((uintptr_t)x % sizeof(float) || (uintptr_t)scales % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    if (terse_overlap(scales, count * sizeof(float), x, n * sizeof(float))) return TERSE_CODEC_OVERLAP;
    const size_t accepted = codec->scales((uint8_t *)scales, x, n, o);
    if (accepted == n) return TERSE_CODEC_OK;
    if (bad) *bad = accepted;
    return isfinite(x[accepted]) ? TERSE_CODEC_DOES_NOT_FIT : TERSE_CODEC_NOT_FINITE;
}

void terse_codecs_use_threads(unsigned threads) { terse_parallel_use(threads); }

enum {
    CUT = 4096,    // elements: whole 64-bit words of signs, whole groups of terse/walk.h
    PIECE = 1024,  // of error feedback: so short that the next one is on its way from memory while this one is computed
};

typedef struct encoding {
    const terse_codec *codec;
    uint8_t *wire;
    const float *x;
    size_t n;
    const terse_codec_options *options;
    atomic_size_t accepted;
} encoding;

static void encode_part(void *context, size_t begin, size_t end) {
    encoding *e = context;
    const size_t good = e->codec->encode(e->wire, e->x, e->n, e->options, begin, end);
    size_t least = atomic_load(&e->accepted);
    while (good < end && good < least && !atomic_compare_exchange_weak(&e->accepted, &least, good)) {
    }
}

typedef struct decoding {
    const terse_codec *codec;
    float *sum;
    const uint8_t *wire;
    size_t n;
    const terse_codec_options *options;
    int clears;  // the sum first
    atomic_int status;
} decoding;

// One piece after the other, so that what is cleared is still in the cache when the wire is added.
static void decode_part(void *context, size_t begin, size_t end) {
    decoding *d = context;
    const size_t piece = d->clears ? CUT : end - begin;
    size_t at = begin, to;
    do {  // of an empty range too: the scales of empty segments are checked
        to = end - at < piece ? end : at + piece;
        if (d->clears && at < to) memset(d->sum + at, 0, (to - at) * sizeof *d->sum);
        const terse_codec_status status = d->codec->decode_add(d->sum, d->wire, d->n, d->options, at, to);
        if (status != TERSE_CODEC_OK) atomic_store(&d->status, status);
        at = to;
    } while (at < end);
}

static void check_part_of_wire(void *context, size_t begin, size_t end) {
    decoding *d = context;
    if (!d->codec->is_good(d->wire, d->n, d->options, begin, end)) atomic_store(&d->status, TERSE_CODEC_BAD_WIRE);
}

static int is_good(const terse_codec *codec, const uint8_t *wire, size_t n, const terse_codec_options *o) {
    if (codec->whole || !codec->is_good) return 1;  // decode_add checks it
    decoding d = {.codec = codec, .wire = wire, .n = n, .options = o};
    terse_parallel(n, CUT, check_part_of_wire, &d);
    return atomic_load(&d.status) == TERSE_CODEC_OK;
}

// Whether a piece cannot be changed before the wire is added to it, and the next piece afterwards.
static int is_decoded_whole(const terse_codec *codec) { return codec->whole || codec->scattered; }

static terse_codec_status decode_to(const terse_codec *codec, float *sum, const uint8_t *wire, size_t n,
                                    const terse_codec_options *o, int clears) {
    // The whole wire is checked before anything is added: a refused wire adds nothing.
    if (!is_good(codec, wire, n, o)) return TERSE_CODEC_BAD_WIRE;
    decoding d = {codec, sum, wire, n, o, clears && !is_decoded_whole(codec), TERSE_CODEC_OK};
    if (clears && !d.clears && n > 0) memset(sum, 0, n * sizeof *sum);
    if (codec->whole) return codec->decode_add(sum, wire, n, o, 0, n);
    terse_parallel(n, CUT, decode_part, &d);
    return (terse_codec_status)atomic_load(&d.status);
}

static terse_codec_status decode_add(const terse_codec *codec, float *sum, const uint8_t *wire, size_t n,
                                     const terse_codec_options *o) {
    return decode_to(codec, sum, wire, n, o, 0);
}

static terse_codec_status encode(const terse_codec *codec, uint8_t *wire, const float *x, size_t n,
                                 const terse_codec_options *o, size_t *bad) {
    const int at_once = codec->encode_at_once && !o->units && terse_scale_group_count(n, o) == 1;
    size_t accepted = !at_once && codec->prepare ? codec->prepare(wire, x, n, o) : n;
    if (at_once) accepted = codec->encode_at_once(wire, x, n, o);
    else if (accepted == n && codec->whole) accepted = codec->encode(wire, x, n, o, 0, n);
    else if (accepted == n) {
        encoding e = {codec, wire, x, n, o, n};
        terse_parallel(n, CUT, encode_part, &e);
        accepted = atomic_load(&e.accepted);
    }
    if (accepted == n) return TERSE_CODEC_OK;
    if (bad) *bad = accepted;
    return isfinite(x[accepted]) ? TERSE_CODEC_DOES_NOT_FIT : TERSE_CODEC_NOT_FINITE;
}

terse_codec_status terse_codec_encode(const terse_codec *codec, uint8_t *wire, size_t wire_bytes, const float *x,
                                      size_t n, const terse_codec_options *o, size_t *bad) {
    terse_codec_status status = check_buffers(codec, wire, wire_bytes, x, n, o);
    if (status == TERSE_CODEC_OK) status = check_encoding(codec, o);
    return status == TERSE_CODEC_OK ? encode(codec, wire, x, n, o, bad) : status;
}

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

static void lower(atomic_size_t *least, size_t to) {
    size_t before = atomic_load(least);
    while (to < before && !atomic_compare_exchange_weak(least, &before, to)) {
    }
}

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
    encode(f->codec, f->wire, f->error, terse_scale_group_begin(group, f->n, f->options), &before, &refused);
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
            lower(&f->refused, f->encodes ? first_refused(f, encoded, added) : added);
            break;
        }
        if (f->measures)
            f->measures[encoded / TERSE_MEASURED] = f->codec->measure(f->wire, f->error, f->n, f->options, encoded, to);
        if (f->encodes) {
            const size_t accepted = f->codec->encode(f->wire, f->error, f->n, f->options, encoded, to);
            if (accepted < to) {
                lower(&f->refused, accepted);
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
    f->piece = own ? own : !f->x && n && is_decoded_whole(codec) ? n : PIECE;
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
    } else if (encode(codec, f->wire, f->error, n, o, &refused) == TERSE_CODEC_OK) {
        terse_codec_options back = *o;
        back.scale = -1.0f;
        decode_add(codec, f->error, f->wire, n, &back);
        return n;
    }
    if (refused < n && f->x) terse_parallel(n, CUT, subtract_part, f);
    return refused;
}

terse_codec_status terse_codec_encode_with_feedback(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                                    const float *x, float *error, size_t n,
                                                    const terse_codec_options *o, size_t *bad) {
    terse_codec_status status = check_buffers(codec, wire, wire_bytes, error, n, o);
    if (status == TERSE_CODEC_OK) status = check_encoding(codec, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!(o->decay > 0 && o->decay <= 1)) return TERSE_CODEC_BAD_DECAY;
    if ((uintptr_t)x % sizeof(float)) return TERSE_CODEC_MISALIGNED;
    if (terse_overlap(error, n * sizeof(float), x, n * sizeof(float)) ||
        terse_overlap(wire, wire_bytes, x, n * sizeof(float)))
        return TERSE_CODEC_OVERLAP;
    if (meets_options(error, n * sizeof(float), n, o)) return TERSE_CODEC_OVERLAP;

    feedback f = {.codec = codec, .wire = wire, .x = x, .error = error, .n = n, .options = o, .refused = n};
    size_t refused = feed_back(&f);
    if (refused == n) return TERSE_CODEC_OK;
    // What is not finite in x is said first, wherever it is.
    const size_t not_finite = terse_first_not_finite(x, n);
    if (not_finite < n) refused = not_finite;
    if (bad) *bad = refused;
    return isfinite(o->decay * error[refused] + x[refused]) ? TERSE_CODEC_DOES_NOT_FIT : TERSE_CODEC_NOT_FINITE;
}

terse_codec_status terse_codec_encode_sum_with_feedback(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                                        const uint8_t *const *wires, size_t count, float *error,
                                                        size_t n, const terse_codec_options *o, size_t *bad) {
    terse_codec_status status = check_buffers(codec, wire, wire_bytes, error, n, o);
    if (status == TERSE_CODEC_OK) status = check_encoding(codec, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!(o->decay > 0 && o->decay <= 1)) return TERSE_CODEC_BAD_DECAY;
    if (!isfinite(o->scale)) return TERSE_CODEC_BAD_SCALE;
    if (meets_options(error, n * sizeof(float), n, o)) return TERSE_CODEC_OVERLAP;
    for (size_t r = 0; r < count; r++)
        if (terse_overlap(error, n * sizeof(float), wires[r], wire_bytes) ||
            terse_overlap(wire, wire_bytes, wires[r], wire_bytes))
            return TERSE_CODEC_OVERLAP;

    feedback f = {.codec = codec,
                  .wire = wire,
                  .wires = wires,
                  .count = count,
                  .error = error,
                  .n = n,
                  .options = o,
                  .refused = n};
    for (size_t r = 0; r < count; r++)
        if (!is_good(codec, wires[r], n, o)) return TERSE_CODEC_BAD_WIRE;
    const size_t refused = feed_back(&f);
    if (atomic_load(&f.has_bad_wire)) return TERSE_CODEC_BAD_WIRE;
    if (refused == n) return TERSE_CODEC_OK;
    if (bad) *bad = refused;
    return isfinite(error[refused]) ? TERSE_CODEC_DOES_NOT_FIT : TERSE_CODEC_NOT_FINITE;
}

static terse_codec_status check_compensating(const terse_codec *codec, const uint8_t *wire, size_t wire_bytes,
                                             const float *error, size_t n, const terse_codec_options *o) {
    if (!codec->encode_momentum) return TERSE_CODEC_NOT_TAKEN;
    const terse_codec_status status = check_buffers(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (o->zero != TERSE_ZERO_PLUS) return TERSE_CODEC_BAD_ZERO;
    if (o->block || o->segments) return TERSE_CODEC_NOT_TAKEN;
    return meets_options(error, n * sizeof(float), n, o) ? TERSE_CODEC_OVERLAP : TERSE_CODEC_OK;
}

static terse_codec_status accepted_of(size_t accepted, size_t n, size_t *bad) {
    if (accepted == n) return TERSE_CODEC_OK;
    if (bad) *bad = accepted;
    return TERSE_CODEC_NOT_FINITE;
}

terse_codec_status terse_codec_encode_momentum(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                               const float *m, const float *g, float *error, size_t n,
                                               const terse_momentum *weights, const terse_codec_options *o,
                                               size_t *bad) {
    const terse_codec_status status = check_compensating(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    const float *const read[] = {m, g};
    for (size_t k = 0; k < 2; k++) {
        if ((uintptr_t)read[k] % sizeof(float)) return TERSE_CODEC_MISALIGNED;
        if (terse_overlap(error, n * sizeof(float), read[k], n * sizeof(float)) ||
            terse_overlap(wire, wire_bytes, read[k], n * sizeof(float)))
            return TERSE_CODEC_OVERLAP;
    }
    if (n == 0) return TERSE_CODEC_OK;  // its wire has no scale
    return accepted_of(codec->encode_momentum(wire, m, g, error, n, weights, o), n, bad);
}

terse_codec_status terse_codec_encode_sum(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                          const uint8_t *const *wires, size_t count, float *error, size_t n, float sent,
                                          const terse_codec_options *o, size_t *bad) {
    const terse_codec_status status = check_compensating(codec, wire, wire_bytes, error, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (!isfinite(o->scale)) return TERSE_CODEC_BAD_SCALE;
    if (n == 0) return TERSE_CODEC_OK;
    for (size_t r = 0; r < count; r++) {
        if (terse_overlap(error, n * sizeof(float), wires[r], wire_bytes) ||
            terse_overlap(wire, wire_bytes, wires[r], wire_bytes))
            return TERSE_CODEC_OVERLAP;
        if (!codec->is_good(wires[r], n, o, 0, n)) return TERSE_CODEC_BAD_WIRE;
    }
    return accepted_of(codec->encode_sum(wire, wires, count, error, n, sent, o), n, bad);
}

static terse_codec_status checked_decode(const terse_codec *codec, float *sum, size_t n, const uint8_t *wire,
                                         size_t wire_bytes, const terse_codec_options *o, int clears) {
    const terse_codec_status status = check_buffers(codec, wire, wire_bytes, sum, n, o);
    if (status != TERSE_CODEC_OK) return status;
    if (meets_options(sum, n * sizeof(float), n, o)) return TERSE_CODEC_OVERLAP;
    if (!isfinite(o->scale)) return TERSE_CODEC_BAD_SCALE;
    return decode_to(codec, sum, wire, n, o, clears);
}

terse_codec_status terse_codec_decode_add(const terse_codec *codec, float *sum, size_t n, const uint8_t *wire,
                                          size_t wire_bytes, const terse_codec_options *o) {
    return checked_decode(codec, sum, n, wire, wire_bytes, o, 0);
}

terse_codec_status terse_codec_decode(const terse_codec *codec, float *x, size_t n, const uint8_t *wire,
                                      size_t wire_bytes, const terse_codec_options *o) {
    return checked_decode(codec, x, n, wire, wire_bytes, o, 1);
}
