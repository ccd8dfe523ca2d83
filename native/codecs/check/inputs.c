// The numbers and options with which codecs are checked: random, but the same in every run.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../packages/codecs/src/shared/scale-groups/scale_groups.h"
#include "check.h"
#include "codec_lists.h"

long checks, bad_checks;

void expect(int good, const char *what, const char *implementation, size_t n, const char *how) {
    checks++;
    if (good) return;
    if (bad_checks++ < 20) printf("%s %s differs from scalar at n = %zu: %s\n", what, implementation, n, how);
}

int same_double(double a, double b) { return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof a); }

uint64_t random_word(void) {  // splitmix64
    static uint64_t state = 0x9E3779B97F4A7C15u;
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void random_bytes(uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t word = random_word();
        memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

float any_float(void) {
    const uint64_t r = random_word();
    switch (r % 8) {
        case 0: return 0.0f;
        case 1: return -0.0f;
        case 2: return (r & 8 ? 1 : -1) * 0x1p-149f;
        case 3: return (r & 8 ? 1 : -1) * 0x1.fffffep127f;
    }
    const uint32_t bits = (uint32_t)(r >> 32);
    float x;
    memcpy(&x, &bits, 4);
    return isfinite(x) ? x : 1.0f;
}

float bf16_float(void) {
    const float x = any_float();
    return fabsf(x) < 0x1.ffp127f ? x : copysignf(0x1.fefffep127f, x);
}

float f16_float(void) {
    const uint64_t r = random_word();
    if (r % 8 == 0) return r & 8 ? 65519.996f : -65519.996f;
    const float x = any_float();
    int exponent;
    const float fraction = frexpf(x, &exponent);
    return ldexpf(fraction, (int)(r / 8 % 43) - 27);  // 2^-28 .. 2^15
}

float gradient(void) {
    const uint64_t r = random_word();
    return r % 8 == 0 ? 0.0f : ldexpf((float)(int32_t)(r >> 32), -31 - (int)(r >> 3 & 7));
}

float sparse(void) {
    static unsigned run;
    if (run == 0 && random_word() % 4 == 0) run = 40;
    return run && run-- ? 0.0f : gradient();
}

float with_a_norm(void) { return any_float() * 0x1p-8f; }

float near_one(void) {
    const uint64_t r = random_word();
    return (r & 1 ? 1.0f : -1.0f) * (1.0f + (float)(r >> 40) * 0x1p-24f) * (r & 2 ? 1.0f : 0x1p-20f);
}

float few_whole(void) { return (float)((int)(random_word() % 15) - 7); }
float one_or_minus_one(void) { return random_word() % 2 ? 1.0f : -1.0f; }

// Memory for the option that owns `at`; it lasts until the next call.
static void *room(void **at, size_t bytes) {
    *at = realloc(*at, bytes + 16);
    if (!*at) abort();
    return *at;
}

static void by_segments(terse_codec_options *o, size_t n) {  // empty ones, one of one element, odd ends
    static void *at;
    const size_t ends[] = {0, n / 3, n / 3, n > n / 3 ? n - 1 : n, n, n};
    o->segments = memcpy(room(&at, sizeof ends), ends, sizeof ends), o->segment_count = sizeof ends / sizeof *ends;
}

static void by_units(terse_codec_options *o, size_t n) {  // the largest unit there may be, units smaller than the
                                                          // numbers, and 0
    static void *at;
    o->unscaled = 1, o->unit_count = terse_scale_group_count(n, o);
    float *units = room(&at, o->unit_count * sizeof *units);
    for (size_t r = 0; r < o->unit_count; r++)
        units[r] = r % 5 == 3 ? 0.0f : r % 7 == 5 ? 0x1p111f : 0.003f * (float)(r % 3 + 1);
    o->units = units;
}

static void hold_some(terse_codec_options *o, size_t n) {
    static void *at;
    uint8_t *mask = (uint8_t *)room(&at, n / 8 + 8) + n % 7;
    random_bytes(mask, n / 8 + 1);
    o->hold = mask;
}

terse_codec_options options_of(const configuration *c, size_t n) {
    terse_codec_options o = c->options;
    o.size = sizeof o, o.scale = 1.0f, o.decay = random_word() % 2 ? 1.0f : 0.95f;
    o.seed = random_word(), o.step = random_word(), o.index = random_word() / 64 * 64;
    if (c->fill) c->fill(&o, n);
    if (c->segments) by_segments(&o, n);
    if (c->units) by_units(&o, n);
    if (c->held) hold_some(&o, n);
    return o;
}

static void a_seventh(terse_codec_options *o, size_t n) { o->k = n / 7 + 1; }

configurations configurations_of(const terse_codec *codec) {
#define DECLARE(symbol, name) extern const configurations terse_##symbol##_configurations;
#define RETURN(symbol, called) \
    if (!strcmp(codec->name, called)) return terse_##symbol##_configurations;
    CONFIGURATIONS(DECLARE)
    CONFIGURATIONS(RETURN)
    static configuration by_itself;
    const uint32_t takes = codec->takes;
    by_itself = (configuration){"with what it takes", {0}, .number = gradient, .least = 1};
    if (takes & TERSE_TAKES_ZERO) by_itself.options.zero = TERSE_ZERO_PLUS;
    if (takes & TERSE_TAKES_BITS) by_itself.options.bits = 4;
    if (takes & TERSE_TAKES_BLOCK) by_itself.options.block = 37;
    if (takes & TERSE_TAKES_K && takes & TERSE_TAKES_BLOCK) by_itself.options.k = 5;
    else if (takes & TERSE_TAKES_K) by_itself.fill = a_seventh;
    return (configurations){&by_itself, 1};
}
