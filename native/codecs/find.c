// Which implementations there are, and which of them runs here.
#include <stdlib.h>
#include <string.h>

#include "codec_lists.h"
#include "terse/codecs.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>
// clang learned the name "f16c" late. Asked once: on a virtual machine cpuid takes some 20 us.
static int has_f16c(void) {
    static atomic_int known;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer) return answer > 0;
    unsigned a, b, c, d;
    answer = __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C ? 1 : -1;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
    return answer > 0;
}
// RUNS_<implementation>: can this machine run it?
#define RUNS_avx2 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
#define RUNS_avx512                                                                                                   \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && \
     __builtin_cpu_supports("avx512vl"))
#endif

#define RUNS_neon 1
#define RUNS_scalar 1

#define DECLARE_CODEC(codec, implementation) extern const terse_codec terse_##codec##_##implementation;
#define DECLARE_VOTE(vote, implementation) extern const terse_vote terse_##vote##_##implementation;
#define AT(codec, implementation) \
    if (RUNS_##implementation && i-- == 0) return &terse_##codec##_##implementation;

CODECS(DECLARE_CODEC)
VOTES(DECLARE_VOTE)

uint32_t terse_codecs_abi(void) { return TERSE_CODECS_ABI; }

const terse_codec *terse_codec_at(size_t i) {
    CODECS(AT)
    return NULL;
}

const terse_vote *terse_vote_at(size_t i) {
    VOTES(AT)
    return NULL;
}

const char *terse_implementation_at(size_t i) {
#if defined(__x86_64__)
    if (RUNS_avx512 && i-- == 0) return "avx512";
    if (RUNS_avx2 && i-- == 0) return "avx2";
#elif defined(__aarch64__)
    if (i-- == 0) return "neon";
#endif
    return i == 0 ? "scalar" : NULL;
}

// How plain an implementation is: its place in the list above. Past the end: this machine cannot run it.
static size_t plainness(const char *implementation) {
    size_t i = 0;
    for (const char *at; (at = terse_implementation_at(i)) && strcmp(at, implementation); i++) {
    }
    return i;
}

typedef struct request {
    const char *exactly;  // from the caller
    size_t at_most;       // from TERSE_IMPLEMENTATION
} request;

static int requested(request *w, const char *implementation) {
    *w = (request){implementation, 0};
    if (implementation) return 1;
    const char *forced = getenv("TERSE_IMPLEMENTATION");
    if (!forced || !*forced) return 1;
    w->at_most = plainness(forced);
    return terse_implementation_at(w->at_most) != NULL;
}

static int suits(const request *w, const char *implementation) {
    return w->exactly ? !strcmp(w->exactly, implementation) : plainness(implementation) >= w->at_most;
}

terse_codec_status terse_codec_find(const terse_codec **codec, const char *name, const char *implementation) {
    terse_codec_status status = TERSE_CODEC_UNKNOWN;
    const terse_codec *c;
    request w;
    const int possible = requested(&w, implementation);
    for (size_t i = 0; (c = terse_codec_at(i)); i++) {
        if (strcmp(c->name, name)) continue;
        status = TERSE_CODEC_UNAVAILABLE;
        if (!possible || !suits(&w, c->implementation)) continue;
        *codec = c;
        return TERSE_CODEC_OK;
    }
    return status;
}

terse_codec_status terse_vote_find(const terse_vote **vote, const char *implementation) {
    const terse_vote *v;
    request w;
    if (!requested(&w, implementation)) return TERSE_CODEC_UNAVAILABLE;
    for (size_t i = 0; (v = terse_vote_at(i)); i++) {
        if (!suits(&w, v->implementation)) continue;
        *vote = v;
        return TERSE_CODEC_OK;
    }
    return TERSE_CODEC_UNAVAILABLE;
}
