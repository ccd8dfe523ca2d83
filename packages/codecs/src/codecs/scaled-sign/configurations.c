#include "check/check.h"

static void by_bytes(terse_codec_options *o, size_t n) {
    static size_t ends[4];
    ends[1] = n / 3 / 8 * 8, ends[2] = n / 2 / 8 * 8, ends[3] = n;
    o->segments = ends, o->segment_count = 4;
}

const configurations terse_scaled_sign_configurations = THESE(
    {"one scale", {.zero = TERSE_ZERO_PLUS}}, {"one scale, some elements held", {.zero = TERSE_ZERO_MINUS}, .held = 1},
    {"blocks of 7", {.zero = TERSE_ZERO_MINUS, .block = 7}, .number = sparse},
    {"blocks of 24", {.zero = TERSE_ZERO_PLUS, .block = 24}},
    {"blocks of 37, some elements held", {.zero = TERSE_ZERO_MINUS, .block = 37}, .held = 1},
    {"blocks of 512", {.zero = TERSE_ZERO_PLUS, .block = 512}},
    {"blocks of 512, some elements held", {.zero = TERSE_ZERO_PLUS, .block = 512}, .held = 1},
    {"segments", {.zero = TERSE_ZERO_PLUS}, .segments = 1},
    {"segments of whole bytes", {.zero = TERSE_ZERO_MINUS}, by_bytes});
