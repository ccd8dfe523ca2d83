// Codecs: how a vector of floats is written on the wire, and how written vectors vote without being unpacked.
//
// Every wire is little-endian, least significant bit first; bit 1 means plus; pad bits are 0. Sizes are in elements.
// Nothing here allocates, keeps state, prints or exits. Pointers need no alignment beyond their type's.
#ifndef TERSE_CODECS_H
#define TERSE_CODECS_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define TERSE_CODECS_ABI 1

// The TERSE_CODECS_ABI that the library was built with.
uint32_t terse_codecs_abi(void);

typedef enum terse_codec_status {
    TERSE_CODEC_OK = 0,
    TERSE_CODEC_UNKNOWN = 1,        // no codec has this name
    TERSE_CODEC_NOT_HERE = 2,       // the codec has no such implementation, or this machine cannot run it
    TERSE_CODEC_BAD_RANKS = 3,      // fewer than 1 or more than TERSE_VOTE_MAX_RANKS votes
} terse_codec_status;

// One sentence about a status, for people. Never NULL.
const char *terse_codec_sentence(terse_codec_status status);

// The sign of an exact zero; -0.0 is an exact zero like any other.
typedef enum terse_zero { TERSE_ZERO_MINUS = 0, TERSE_ZERO_PLUS = 1 } terse_zero;

typedef struct terse_codec_options {
    terse_zero zero;      // encode
    const uint8_t *hold;  // NULL, or packed like a wire: bit 1 = this lane says nothing. encode writes 0, decode_add adds nothing
    float scale;          // decode_add: what the wire's 1.0 stands for
} terse_codec_options;

// One implementation of one codec. All implementations of a codec write the same bytes and add the same floats.
typedef struct terse_codec {
    const char *name;            // "sign"
    const char *implementation;  // "scalar", "avx2", ...
    size_t (*wire_bytes)(size_t n);
    // Writes wire_bytes(n) bytes and returns n; or meets a NaN or an infinity and returns its index (the first one's), the wire undefined.
    size_t (*encode)(uint8_t *wire, const float *x, size_t n, const terse_codec_options *options);
    // sum += scale * decode(wire)
    void (*decode_add)(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *options);
} terse_codec;

// Best implementation that this machine can run. `implementation` forces one; NULL asks the environment variable
// TERSE_IMPLEMENTATION, then takes the best. *codec is set only on TERSE_CODEC_OK.
terse_codec_status terse_codec_find(const terse_codec **codec, const char *name, const char *implementation);

// Every implementation that this machine can run, best first within a codec. NULL past the end.
const terse_codec *terse_codec_at(size_t i);

enum { TERSE_VOTE_MAX_RANKS = 1024 };

// Elections over packed signs: votes[r] holds the (n + 7) / 8 bytes of rank r. Pad bits of the votes are ignored, those of
// the results are 0. A result may be one of the votes, in place; it may not overlap one otherwise.
typedef struct terse_vote {
    const char *implementation;
    // out = more plus than minus; a tie counts as `tie`.
    terse_codec_status (*majority)(uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n, terse_zero tie);
    // Where nonzero is 0 the vote was tied, and plus is 0 too.
    terse_codec_status (*majority_or_zero)(uint8_t *plus, uint8_t *nonzero, const uint8_t *const *votes, size_t ranks, size_t n);
    // planes[k] = bit k of the number of plus votes; terse_vote_planes(ranks) planes.
    terse_codec_status (*tally)(uint8_t *const *planes, const uint8_t *const *votes, size_t ranks, size_t n);
} terse_vote;

// Bits of a count from 0 to ranks: ceil(log2(ranks + 1)).
size_t terse_vote_planes(size_t ranks);

terse_codec_status terse_vote_find(const terse_vote **vote, const char *implementation);
const terse_vote *terse_vote_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
