#include "check/check.h"

const configurations terse_linf_configurations = THESE(
    {"5 bits", {.bits = 5}, .number = gradient},
    {"5 bits, any numbers", {.bits = 5}},
    {"8 bits, blocks of 192", {.bits = 8, .block = 192}, .number = gradient},
    {"6 bits, segments", {.bits = 6}, .segments = 1, .number = gradient},
    {"3 bits without zero", {.bits = 3, .levels = TERSE_LEVELS_WITHOUT_ZERO}, .number = gradient},
    {"2 bits without zero, segments", {.bits = 2, .levels = TERSE_LEVELS_WITHOUT_ZERO}, .segments = 1, .number = gradient},
    {"4 bits, logarithmic", {.bits = 4, .levels = TERSE_LEVELS_LOGARITHMIC}, .number = gradient},
    {"4 bits, logarithmic, any numbers", {.bits = 4, .levels = TERSE_LEVELS_LOGARITHMIC}},
    {"5 bits, logarithmic, blocks of 7", {.bits = 5, .levels = TERSE_LEVELS_LOGARITHMIC, .block = 7}, .number = sparse},
    {"8 bits, logarithmic, blocks of 1000", {.bits = 8, .levels = TERSE_LEVELS_LOGARITHMIC, .block = 1000}, .number = gradient},
    {"8 bits, logarithmic, blocks of 1000, large numbers", {.bits = 8, .levels = TERSE_LEVELS_LOGARITHMIC, .block = 1000}, .number = with_a_norm},
    {"2 bits, logarithmic, segments", {.bits = 2, .levels = TERSE_LEVELS_LOGARITHMIC}, .segments = 1, .number = gradient},
    {"4 bits in fields of 8, unscaled", {.bits = 4, .width = 8, .unscaled = 1, .ranks = 16}, .number = gradient},
    {"6 bits in fields of 16, unscaled", {.bits = 6, .width = 16, .unscaled = 1, .ranks = 9}, .number = gradient},
    {"2 bits in fields of 16, unscaled, blocks of 100", {.bits = 2, .width = 16, .unscaled = 1, .ranks = 21845, .block = 100}},
    {"5 bits by a unit", {.bits = 5}, .units = 1, .number = gradient},
    {"8 bits in fields of 16, by units of blocks of 77", {.bits = 8, .width = 16, .ranks = 200, .block = 77}, .units = 1},
    {"7 bits in fields of 16, by units of blocks of 512", {.bits = 7, .width = 16, .ranks = 500, .block = 512}, .units = 1, .number = gradient},
    {"2 bits in fields of 8, by units of segments", {.bits = 2, .width = 8, .ranks = 80}, .segments = 1, .units = 1, .number = gradient},
    {"3 bits without zero, by units of segments", {.bits = 3, .levels = TERSE_LEVELS_WITHOUT_ZERO}, .segments = 1, .units = 1, .number = sparse}
);
