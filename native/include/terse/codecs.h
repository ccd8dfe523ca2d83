// Codecs: wire formats for vectors of floats, and majority votes over packed signs.
//
// Every wire is little-endian, least significant bit first; bit 1 means plus; pad bits are 0. Sizes are in elements,
// unless a name says bytes. No function prints or exits, and only the number of threads is global state. l1 and top-k
// allocate memory while they encode, and work without if there is none.
//
//     const terse_codec *qsgd;
//     terse_codec_find(&qsgd, "qsgd", NULL);
//     terse_codec_options options = TERSE_CODEC_OPTIONS;
//     options.bits = 4, options.block = 512, options.seed = 1, options.step = step;
//     size_t bytes, bad;
//     terse_codec_wire_bytes(qsgd, n, &options, &bytes);
//     terse_codec_encode(qsgd, wire, bytes, x, n, &options, &bad);
//     terse_codec_decode_add(qsgd, sum, n, wire, bytes, &options);
#ifndef TERSE_CODECS_H
#define TERSE_CODECS_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TERSE_API __attribute__((visibility("default")))
#else
#define TERSE_API
#endif

#define TERSE_CODECS_ABI 5

// The TERSE_CODECS_ABI that the library was built with. Compare it with the header's before any other call.
TERSE_API uint32_t terse_codecs_abi(void);

typedef enum terse_codec_status {
    TERSE_CODEC_OK = 0,
    TERSE_CODEC_UNKNOWN = 1,            // no codec has this name
    TERSE_CODEC_UNAVAILABLE = 2,        // the codec has no such implementation, or this machine cannot run it
    TERSE_CODEC_BAD_RANKS = 3,          // fewer than 1 or more than TERSE_VOTE_MAX_RANKS ranks, or all absent
    TERSE_CODEC_BAD_ABI = 4,            // options.size is not this library's: another version of the header
    TERSE_CODEC_BAD_LENGTH = 5,         // the wire does not have the bytes that n floats take
    TERSE_CODEC_OVERLAP = 6,            // buffers of one call overlap
    TERSE_CODEC_MISALIGNED = 7,         // a float pointer is no multiple of 4
    TERSE_CODEC_NOT_FINITE = 8,         // x holds a NaN or an infinity
    TERSE_CODEC_DOES_NOT_FIT = 9,       // x holds a finite number that this codec cannot write
    TERSE_CODEC_BAD_WIRE = 10,          // no encoder writes such a wire: it was damaged, or belongs to other options
    TERSE_CODEC_NOT_TAKEN = 11,         // an option is set that this codec does not take
    TERSE_CODEC_BAD_ZERO = 12,          // options.zero, or the sign of a tie, is not set
    TERSE_CODEC_BAD_BITS = 13,          // bits per float out of the codec's range
    TERSE_CODEC_BAD_WIDTH = 14,         // field width: narrower than bits, or not one of the codec's widths
    TERSE_CODEC_TOO_MANY_RANKS = 15,    // a sum would overflow its field: ranks * (2^bits - 1), or ranks * 2 * side
    TERSE_CODEC_BAD_SCALE_GROUPS = 16,  // both block and segments, or segments that do not ascend to n
    TERSE_CODEC_BAD_K = 17,             // k is 0, or more than the number of floats
    TERSE_CODEC_BAD_INDEX = 18,         // index is no multiple of 64
    TERSE_CODEC_BAD_SCALE = 19,         // scale is not finite, or a unit is negative or too large for fp32
    TERSE_CODEC_BAD_CHOICE = 20,        // an option has a value that is not one of its choices
    TERSE_FRAME_NOT_A_FRAME = 21,       // the bytes do not begin with the magic number of frames
    TERSE_FRAME_OTHER_VERSION = 22,     // a frame of a version that this library does not read
    TERSE_FRAME_CUT_SHORT = 23,         // the bytes end before the frame does
    TERSE_FRAME_DAMAGED = 24,           // the checksum does not match
    TERSE_FRAME_BAD_HEADER = 25,        // the checksum matches, but no writer writes such a header
    TERSE_FRAME_NO_ROOM = 26,           // the frame has more segments than the caller has room for
    TERSE_CODEC_BAD_DECAY = 27,         // decay is not more than 0 and at most 1
} terse_codec_status;

// One sentence about a status, for people. Never NULL.
TERSE_API const char *terse_codec_sentence(terse_codec_status status);

// The sign that stands for an exact zero (0.0 or -0.0). There is no default: the caller must set it.
typedef enum terse_zero { TERSE_ZERO_UNSET = 0, TERSE_ZERO_MINUS = 1, TERSE_ZERO_PLUS = 2 } terse_zero;

// The levels of linf (Lion Cub: section 2; section 4.2 and Figure 5).
typedef enum terse_levels {
    TERSE_LEVELS_UNIFORM = 0,
    TERSE_LEVELS_WITHOUT_ZERO = 1,
    TERSE_LEVELS_LOGARITHMIC = 2
} terse_levels;

// How top-k writes the indices and the values of what it keeps: packages/codecs/src/codecs/top-k/README.md.
typedef enum terse_indices { TERSE_INDICES_FIXED = 0, TERSE_INDICES_ELIAS_FANO = 1 } terse_indices;
typedef enum terse_values {
    TERSE_VALUES_F32 = 0,
    TERSE_VALUES_F16 = 1,
    TERSE_VALUES_2BIT = 2,
    TERSE_VALUES_SIGN = 3,
} terse_values;

// Start from TERSE_CODEC_OPTIONS. The options above the line determine the wire format, and must be the same on every
// rank. A codec refuses those of them that it does not take, and a mask or units (TERSE_CODEC_NOT_TAKEN); it ignores
// zero, seed and step. Its README lists what it takes.
typedef struct terse_codec_options {
    size_t size;        // sizeof(terse_codec_options): the version of this struct
    uint32_t bits;      // bits per float before summing
    uint32_t width;     // bits of a field on the wire; 0: as many as bits
    uint32_t ranks;     // how many wires a field has room to sum; when decoding, how many were summed; 0: 1
    uint32_t unscaled;  // 1: no scales on the wire, and decoded values are levels; only such wires can be summed
    terse_levels levels;
    uint32_t dimensions;     // dct-top-k: 1 or 2; 0: 1
    uint32_t side;           // l1: levels on each side of 0, s; 0: the most, 2^(bits - 1) - 1
    size_t block;            // floats that share a scale (or a transform); 0: no blocks
    const size_t *segments;  // ends of the segments that share a scale: ascending, the last is n; NULL: no segments
    size_t segment_count;
    size_t k;               // how many elements are kept: of all (top-k), of each block (dct-top-k)
    float clip;             // terngrad: in standard deviations; 0: none
    terse_indices indices;  // top-k
    terse_values values;    // top-k
    // --------------------------------------------------------------------------------------------------------------
    terse_zero zero;      // encode: for codecs with no code for zero
    const uint8_t *hold;  // packed like signs, or NULL; 1: masked, so encode writes 0 and decode_add adds nothing
    uint64_t seed, step;  // the draw for x[i] depends only on seed, step and index + i
    uint64_t index;       // of x[0], where x is part of something longer; a multiple of 64
    float scale;          // decode_add: the factor of the decoded values
    float decay;          // encode_with_feedback: the factor of the error before x is added, more than 0 and at most 1
    const float *units;  // of unscaled wires: the value of one level in each scale group, the same on every rank; NULL:
                         // encode uses x's own scales, decode_add 1
    size_t unit_count;   // the number of scale groups
} terse_codec_options;

// Options with nothing set.
#ifdef __cplusplus
#define TERSE_CODEC_OPTIONS terse_codec_default_options()
inline terse_codec_options terse_codec_default_options() {
    terse_codec_options options = terse_codec_options();
    options.size = sizeof options;
    options.scale = 1.0f;
    options.decay = 1.0f;
    return options;
}
#else
#define TERSE_CODEC_OPTIONS {.size = sizeof(terse_codec_options), .scale = 1.0f, .decay = 1.0f}
#endif

// What terse_codec_encode_momentum adds to an error, and what has been sent of it.
typedef struct terse_momentum {
    float keep, add;  // the factors of the momentum and of the gradient
    float sent;       // the magnitude on the wire that was written of this error last; 0: none
} terse_momentum;

// Which options a codec takes.
enum {
    TERSE_TAKES_ZERO = 1 << 0,
    TERSE_TAKES_HOLD = 1 << 1,
    TERSE_TAKES_RANDOM = 1 << 2,
    TERSE_TAKES_BLOCK = 1 << 3,
    TERSE_TAKES_SEGMENTS = 1 << 4,
    TERSE_TAKES_BITS = 1 << 5,
    TERSE_TAKES_FIELDS = 1 << 6,
    TERSE_TAKES_UNSCALED = 1 << 7,
    TERSE_TAKES_LEVELS = 1 << 8,
    TERSE_TAKES_DIMENSIONS = 1 << 9,
    TERSE_TAKES_K = 1 << 10,
    TERSE_TAKES_CLIP = 1 << 11,
    TERSE_TAKES_SIDE = 1 << 12,
    TERSE_TAKES_INDICES = 1 << 13,
    TERSE_TAKES_VALUES = 1 << 14,
};

// One implementation of one codec. All implementations of a codec write the same bytes and add the same floats.
//
// The functions of the table do not check their arguments; call them through terse_codec_encode and its siblings, which
// do. encode and decode_add work on the elements [begin, end) of the whole wire and the whole vector, so that several
// threads can share a vector: begin is a multiple of 64, end is one too or n. If `whole` is set, one call gets all
// elements. If a block of a transform is longer than 64 elements, a call processes the blocks that begin in its range.
typedef struct terse_codec {
    const char *name;            // "sign"
    const char *implementation;  // "scalar", "avx2", ...
    uint32_t takes;              // TERSE_TAKES_...
    uint32_t whole;              // 1: cannot be split into ranges
    // The checks of options that only this codec knows. NULL: none.
    terse_codec_status (*check)(size_t n, const terse_codec_options *options);
    size_t (*wire_bytes)(size_t n, const terse_codec_options *options);
    // Runs before encode: writes the scales. Returns n, or the index of the first element that it refuses. NULL:
    // nothing to prepare. It may leave scales of small blocks to encode, which may then refuse an element itself.
    size_t (*prepare)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options);
    // Returns end, or the index of the first element that it refuses (NaN, an infinity, or what does not fit), the wire
    // undefined.
    size_t (*encode)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                     size_t end);
    // Runs before decode_add: whether the wire is valid in this range. NULL: decode_add checks it, or every wire is
    // valid.
    int (*is_good)(const uint8_t *wire, size_t n, const terse_codec_options *options, size_t begin, size_t end);
    // sum += scale * decode(wire), the product rounded to fp32 before it is added. Any bytes may arrive:
    // TERSE_CODEC_BAD_WIRE for bytes that no encoder writes, if they would give an index outside of sum, NaN or
    // infinity; then nothing is added.
    terse_codec_status (*decode_add)(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options,
                                     size_t begin, size_t end);
    // The scale of each scale group, one fp32 at any address. Returns n, or the index of the first element that it
    // refuses. NULL: no scales.
    size_t (*scales)(uint8_t *scales, const float *x, size_t n, const terse_codec_options *options);
    // prepare and encode in one call, on all threads, for an x that is one scale group with its own scale; returns what
    // they return. For codecs that then read memory less often. NULL: prepare, then encode.
    size_t (*encode_at_once)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options);
    // Of blocks of at most so many elements encode computes the scales; prepare does nothing then.
    size_t blocks_in_encode;
    // terse_codec_encode_momentum and terse_codec_encode_sum, on all threads. They return n, or the index of the first
    // element of error that is not finite. NULL: the codec has none.
    size_t (*encode_momentum)(uint8_t *wire, const float *m, const float *g, float *error, size_t n,
                              const terse_momentum *weights, const terse_codec_options *options);
    size_t (*encode_sum)(uint8_t *wire, const uint8_t *const *wires, size_t count, float *error, size_t n, float sent,
                         const terse_codec_options *options);
    // What prepare does, for floats that are one scale group without a mask, while they are in the cache: measure is
    // called for each chunk of TERSE_MEASURED elements, in any order, and then prepare_measured with all measures.
    // NULL: prepare reads all floats at once.
    double (*measure)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options, size_t begin,
                      size_t end);
    size_t (*prepare_measured)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options,
                               const double *measures);
    uint32_t scattered;  // 1: for a range, encode and decode_add also use elements outside of it; ranges that cover all
                         // use each once
} terse_codec;

enum { TERSE_MEASURED = 1 << 16 };

// The best implementation that this machine can run. `implementation` forces one. NULL: the one that the environment
// variable TERSE_IMPLEMENTATION names (or the next plainer one, if the codec has none of that name), else the best.
// *codec is set only on TERSE_CODEC_OK.
TERSE_API terse_codec_status terse_codec_find(const terse_codec **codec, const char *name, const char *implementation);

// Every implementation that this machine can run, best first within a codec. NULL past the end.
TERSE_API const terse_codec *terse_codec_at(size_t i);

// The instruction levels that this machine can run, best first; "scalar" is the last. NULL past the end.
TERSE_API const char *terse_implementation_at(size_t i);

// *bytes = the bytes that n floats take.
TERSE_API terse_codec_status terse_codec_wire_bytes(const terse_codec *codec, size_t n,
                                                    const terse_codec_options *options, size_t *bytes);

// Writes x to the wire. On TERSE_CODEC_NOT_FINITE and TERSE_CODEC_DOES_NOT_FIT *bad is the index of the first such
// element and the wire is undefined; on any other failure nothing was written. bad may be NULL.
TERSE_API terse_codec_status terse_codec_encode(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                                const float *x, size_t n, const terse_codec_options *options,
                                                size_t *bad);

// Error feedback (Seide et al. 2014; Karimireddy et al. 2019): error = decay * error + x, wire = encode(error),
// error -= decode(wire). The product is rounded to fp32 before x is added; with a decay of 1 nothing is rounded.
// On TERSE_CODEC_NOT_FINITE and TERSE_CODEC_DOES_NOT_FIT error keeps its old values, up to the rounding of these
// operations and their inverses: x and the error are read once, so elements before the refused one have been changed.
TERSE_API terse_codec_status terse_codec_encode_with_feedback(const terse_codec *codec, uint8_t *wire,
                                                              size_t wire_bytes, const float *x, float *error, size_t n,
                                                              const terse_codec_options *options, size_t *bad);

// What the owner of a chunk does with the wires of all ranks: error = decay * error + scale * decode(wires[0]) + ...,
// wire = encode(error), error -= decode(wire). Each wire has wire_bytes bytes. After a failure that only the wires or
// the sums show (TERSE_CODEC_BAD_WIRE, NOT_FINITE, DOES_NOT_FIT) error is undefined.
TERSE_API terse_codec_status terse_codec_encode_sum_with_feedback(const terse_codec *codec, uint8_t *wire,
                                                                  size_t wire_bytes, const uint8_t *const *wires,
                                                                  size_t count, float *error, size_t n,
                                                                  const terse_codec_options *options, size_t *bad);

// A momentum with error compensation, in one pass: 1-bit Adam (Tang et al. 2021) and 1-bit LAMB. For codecs of one
// magnitude; all floats are one scale group, and options.zero is TERSE_ZERO_PLUS.
//   error = error - sent * sign(error)                where sign(0) is 1: what the wire before could not say
//   error = fma(add, g, fma(keep, m, error))
//   wire  = encode(error)
// Unlike in encode_with_feedback, error still holds what this wire says; the next call subtracts it. Masked elements
// have sent nothing. On TERSE_CODEC_NOT_FINITE error is undefined, and *bad is its first element that is not finite.
TERSE_API terse_codec_status terse_codec_encode_momentum(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                                         const float *m, const float *g, float *error, size_t n,
                                                         const terse_momentum *weights,
                                                         const terse_codec_options *options, size_t *bad);

// The same for the owner of a chunk: error = error - sent * sign(error) + scale * decode(wires[0]) + ..., wire =
// encode(error). Masked elements stay as they are. On TERSE_CODEC_BAD_WIRE nothing has changed.
TERSE_API terse_codec_status terse_codec_encode_sum(const terse_codec *codec, uint8_t *wire, size_t wire_bytes,
                                                    const uint8_t *const *wires, size_t count, float *error, size_t n,
                                                    float sent, const terse_codec_options *options, size_t *bad);

// sum += scale * decode(wire). On failure sum is as it was.
TERSE_API terse_codec_status terse_codec_decode_add(const terse_codec *codec, float *sum, size_t n, const uint8_t *wire,
                                                    size_t wire_bytes, const terse_codec_options *options);

// x = scale * decode(wire), the bits of decode_add to zeros: masked elements are 0. After TERSE_CODEC_BAD_WIRE x is
// undefined; after any other failure x is as it was.
TERSE_API terse_codec_status terse_codec_decode(const terse_codec *codec, float *x, size_t n, const uint8_t *wire,
                                                size_t wire_bytes, const terse_codec_options *options);

// scales[r] = the scale of scale group r of x, as encode writes it; `count` scale groups. On failure as
// terse_codec_encode.
TERSE_API terse_codec_status terse_codec_scales(const terse_codec *codec, float *scales, size_t count, const float *x,
                                                size_t n, const terse_codec_options *options, size_t *bad);

// Sets how many threads share a long encode or decode_add, including the caller's; 1 at the start. The bytes do not
// depend on it.
TERSE_API void terse_codecs_use_threads(unsigned threads);

// A frame: a wire with a header that names its codec and options, and a checksum. docs/wire-formats.md has the picture.
enum { TERSE_FRAME_VERSION = 1 };

// The contents of a frame. Only the segments are copied.
typedef struct terse_frame {
    const terse_codec *codec;
    terse_codec_options options;  // the options that determine the wire format; a frame does not contain `hold`
    size_t n;                     // floats; the frame of a sparse codec may be far smaller
    const uint8_t *wire;
    size_t wire_bytes;
    size_t bytes;  // of the frame; later bytes were not read
} terse_frame;

// *bytes = the bytes of a frame around n floats. *wire_at = where in it the wire begins; may be NULL.
TERSE_API terse_codec_status terse_frame_bytes(const terse_codec *codec, size_t n, const terse_codec_options *options,
                                               size_t *bytes, size_t *wire_at);

// Writes a frame around a wire, which may lie in the frame already, at `wire_at`. On failure nothing was written.
TERSE_API terse_codec_status terse_frame_write(const terse_codec *codec, uint8_t *frame, size_t frame_bytes,
                                               const uint8_t *wire, size_t wire_bytes, size_t n,
                                               const terse_codec_options *options);

// Reads the frame at the beginning of `bytes`, which may be any bytes. `segments` has room for `room` of them, and may
// be NULL if `room` is 0; on TERSE_FRAME_NO_ROOM, frame->options.segment_count says how many there are. On
// TERSE_CODEC_OK the whole of *frame is set, and frame->wire has the length that its codec gives n floats. Other
// failures: an unknown codec, or the codec's status for n and the parameters.
TERSE_API terse_codec_status terse_frame_read(terse_frame *frame, const uint8_t *bytes, size_t length, size_t *segments,
                                              size_t room);

enum { TERSE_VOTE_MAX_RANKS = 1024 };

// Majority votes over packed signs: votes[r] holds the (n + 7) / 8 bytes of rank r, or is NULL if rank r is absent and
// not counted. If all ranks are absent, nothing is written (TERSE_CODEC_BAD_RANKS). Pad bits of the votes are ignored,
// those of the results are 0. A result may be one of the votes; TERSE_CODEC_OVERLAP if it overlaps a vote partly, or
// another result.
typedef struct terse_vote {
    const char *implementation;
    // out = 1 where plus has more votes than minus; a tie counts as `tie`.
    terse_codec_status (*majority)(uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n, terse_zero tie);
    // Where nonzero is 0 the vote was tied, and plus is 0 too.
    terse_codec_status (*majority_or_zero)(uint8_t *plus, uint8_t *nonzero, const uint8_t *const *votes, size_t ranks,
                                           size_t n);
    // planes[k] = bit k of the number of plus votes; terse_vote_planes(ranks) planes, where ranks includes absent ones.
    terse_codec_status (*tally)(uint8_t *const *planes, const uint8_t *const *votes, size_t ranks, size_t n);
} terse_vote;

// Bits of a count from 0 to ranks: ceil(log2(ranks + 1)).
TERSE_API size_t terse_vote_planes(size_t ranks);

TERSE_API terse_codec_status terse_vote_find(const terse_vote **vote, const char *implementation);
TERSE_API const terse_vote *terse_vote_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
