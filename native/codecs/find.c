// Which implementations there are, and which of them runs here.
#include <stdlib.h>
#include <string.h>

#include "terse/codecs.h"

#if defined(__x86_64__)
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#define ON_X86(X, codec, implementation, runs) X(codec, implementation, runs)
#else
#define ON_X86(X, codec, implementation, runs)
#endif

// codec, implementation, can this machine run it? Best first within a codec.
#define CODECS(X)                     \
    ON_X86(X, sign, avx2, HAS_AVX2)   \
    X(sign, scalar, 1)

#define VOTES(X)                      \
    ON_X86(X, vote, avx2, HAS_AVX2)   \
    X(vote, scalar, 1)

#define DECLARE_CODEC(codec, implementation, runs) extern const terse_codec terse_##codec##_##implementation;
#define DECLARE_VOTE(codec, implementation, runs) extern const terse_vote terse_##codec##_##implementation;
#define AT(codec, implementation, runs) if ((runs) && i-- == 0) return &terse_##codec##_##implementation;

CODECS(DECLARE_CODEC)
VOTES(DECLARE_VOTE)

uint32_t terse_codecs_abi(void) { return TERSE_CODECS_ABI; }

const char *terse_codec_sentence(terse_codec_status status) {
    switch (status) {
        case TERSE_CODEC_OK: return "All is well.";
        case TERSE_CODEC_UNKNOWN: return "No codec has this name.";
        case TERSE_CODEC_NOT_HERE: return "This codec has no such implementation, or this machine cannot run it.";
        case TERSE_CODEC_BAD_RANKS: return "A vote takes 1 to 1024 ranks.";
    }
    return "This status is not one of terse_codec_status.";
}

const terse_codec *terse_codec_at(size_t i) {
    CODECS(AT)
    return NULL;
}

const terse_vote *terse_vote_at(size_t i) {
    VOTES(AT)
    return NULL;
}

static const char *wanted(const char *implementation) {
    if (!implementation) implementation = getenv("TERSE_IMPLEMENTATION");
    return implementation && *implementation ? implementation : NULL;
}

terse_codec_status terse_codec_find(const terse_codec **codec, const char *name, const char *implementation) {
    terse_codec_status status = TERSE_CODEC_UNKNOWN;
    const terse_codec *c;
    implementation = wanted(implementation);
    for (size_t i = 0; (c = terse_codec_at(i)); i++) {
        if (strcmp(c->name, name)) continue;
        status = TERSE_CODEC_NOT_HERE;
        if (implementation && strcmp(c->implementation, implementation)) continue;
        *codec = c;
        return TERSE_CODEC_OK;
    }
    return status;
}

terse_codec_status terse_vote_find(const terse_vote **vote, const char *implementation) {
    const terse_vote *v;
    implementation = wanted(implementation);
    for (size_t i = 0; (v = terse_vote_at(i)); i++) {
        if (implementation && strcmp(v->implementation, implementation)) continue;
        *vote = v;
        return TERSE_CODEC_OK;
    }
    return TERSE_CODEC_NOT_HERE;
}
