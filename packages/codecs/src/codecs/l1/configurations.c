#include "check/check.h"

const configurations terse_l1_configurations = THESE(
    {"4 bits", {.bits = 4}, .number = gradient},
    {"5 bits", {.bits = 5}, .number = gradient},
    {"5 bits, large numbers", {.bits = 5}, .number = with_a_norm},
    {"7 bits", {.bits = 7}, .number = gradient},
    {"3 bits, blocks of 7, any numbers", {.bits = 3, .block = 7}, .refuses = 1},
    {"3 bits, blocks of 77", {.bits = 3, .block = 77}, .number = gradient},
    {"8 bits, blocks of 192", {.bits = 8, .block = 192}, .number = gradient},
    {"2 bits, segments", {.bits = 2}, .segments = 1, .number = gradient},
    {"6 bits, segments", {.bits = 6}, .segments = 1, .number = gradient},
    {"6 bits in fields of 16", {.bits = 6, .width = 16}, .number = gradient},
    {"3 bits in fields of 8, blocks of 320", {.bits = 3, .width = 8, .block = 320}, .number = gradient},
    {"8 bits in fields of 16, segments", {.bits = 8, .width = 16}, .segments = 1, .number = gradient},
    {"4 bits in fields of 8, unscaled", {.bits = 4, .width = 8, .unscaled = 1, .ranks = 16}, .number = gradient},
    {"2 bits in fields of 16, unscaled, blocks of 100", {.bits = 2, .width = 16, .unscaled = 1, .ranks = 21845, .block = 100}, .number = with_a_norm},
    {"2 bits in fields of 8, unscaled, blocks of 512", {.bits = 2, .width = 8, .unscaled = 1, .ranks = 85, .block = 512}, .number = sparse},
    {"2 bits in fields of 4, unscaled, segments", {.bits = 2, .width = 4, .unscaled = 1, .ranks = 5}, .segments = 1, .number = gradient},
    {"11 levels a side", {.bits = 5, .side = 11}, .number = gradient},
    {"42 levels a side for 3 ranks", {.bits = 7, .side = 42, .width = 8, .ranks = 3, .unscaled = 1}, .segments = 1, .number = gradient},
    {"25 levels a side for 5 ranks, by units of blocks of 200", {.bits = 6, .side = 25, .width = 8, .ranks = 5, .block = 200}, .units = 1, .number = gradient},
    {"5 bits by a unit", {.bits = 5}, .units = 1},
    {"8 bits in fields of 16, by units of blocks of 77", {.bits = 8, .width = 16, .ranks = 200, .block = 77}, .units = 1, .number = gradient},
    {"2 bits in fields of 8, by units of segments", {.bits = 2, .width = 8, .ranks = 80}, .segments = 1, .units = 1, .number = with_a_norm}
);
