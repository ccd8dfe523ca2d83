#include "check/check.h"

static float minus_one_to_one(void) { return (float)((int)(random_word() % 3) - 1); }
static float minus_127_to_127(void) { return (float)((int)(random_word() % 255) - 127); }

const configurations terse_count_configurations = THESE(
    {"signs in fields of 2", {.bits = 1, .width = 2, .ranks = 3, .zero = TERSE_ZERO_MINUS}},
    {"signs in fields of 4", {.width = 4, .ranks = 15, .zero = TERSE_ZERO_PLUS}},
    {"signs in fields of 8", {.width = 8, .ranks = 200, .zero = TERSE_ZERO_MINUS}},
    {"signs in fields of 16", {.width = 16, .ranks = 1001, .zero = TERSE_ZERO_PLUS}},
    {"2 bits", {.bits = 2, .zero = TERSE_ZERO_PLUS}, .number = minus_one_to_one},
    {"2 bits in fields of 4, numbers that do not fit",
     {.bits = 2, .width = 4, .zero = TERSE_ZERO_PLUS},
     .number = few_whole,
     .refuses = 1},
    {"4 bits in fields of 8", {.bits = 4, .width = 8, .ranks = 17, .zero = TERSE_ZERO_PLUS}, .number = few_whole},
    {"8 bits", {.bits = 8, .width = 8, .zero = TERSE_ZERO_PLUS}, .number = minus_127_to_127},
    {"8 bits in fields of 16",
     {.bits = 8, .width = 16, .ranks = 257, .zero = TERSE_ZERO_PLUS},
     .number = minus_127_to_127});
