#include "check/check.h"

static void a_hundredth(terse_codec_options *o, size_t n) { o->k = n / 100 + 1; }
static void a_tenth(terse_codec_options *o, size_t n) { o->k = n / 10 + 1; }
static void a_seventh(terse_codec_options *o, size_t n) { o->k = n / 7 + 1; }
static void a_third(terse_codec_options *o, size_t n) { o->k = n / 3 + 1; }
static void a_half(terse_codec_options *o, size_t n) { o->k = n / 2 + 1; }
static void all(terse_codec_options *o, size_t n) { o->k = n; }

const configurations terse_top_k_configurations = THESE(
    {"one", {.k = 1}, .least = 1}, {"one of a hundred", .fill = a_hundredth, .least = 1},
    {"a tenth", .fill = a_tenth, .least = 1},
    {"a tenth, as of gradients", .fill = a_tenth, .number = gradient, .least = 1},
    {"a seventh", .fill = a_seventh, .least = 1},
    {"a third, many equal", .fill = a_third, .number = few_whole, .least = 1},
    {"half, zeros in between", .fill = a_half, .number = sparse, .least = 1}, {"all", .fill = all, .least = 1},
    {"Elias-Fano, one of a hundred", {.indices = TERSE_INDICES_ELIAS_FANO}, a_hundredth, .least = 1},
    {"Elias-Fano, a seventh, halves",
     {.indices = TERSE_INDICES_ELIAS_FANO, .values = TERSE_VALUES_F16},
     a_seventh,
     .number = f16_float,
     .refuses = 1,
     .least = 1},
    {"Elias-Fano, one, 2 bits", {.k = 1, .indices = TERSE_INDICES_ELIAS_FANO, .values = TERSE_VALUES_2BIT}, .least = 1},
    {"Elias-Fano, a tenth, 2 bits",
     {.indices = TERSE_INDICES_ELIAS_FANO, .values = TERSE_VALUES_2BIT},
     a_tenth,
     .number = gradient,
     .least = 1},
    {"a bitmap, a third, signs",
     {.indices = TERSE_INDICES_ELIAS_FANO, .values = TERSE_VALUES_SIGN},
     a_third,
     .least = 1},
    {"a bitmap, half, 2 bits of any",
     {.indices = TERSE_INDICES_ELIAS_FANO, .values = TERSE_VALUES_2BIT},
     a_half,
     .least = 1},
    {"a tenth, halves of which some do not fit", {.values = TERSE_VALUES_F16}, a_tenth, .refuses = 1, .least = 1},
    {"a tenth, signs", {.values = TERSE_VALUES_SIGN}, a_tenth, .number = sparse, .least = 1});
