#include "check/check.h"

const configurations terse_bin_means_configurations = THESE(
    {"4 bits", {.bits = 4}, .number = gradient}, {"4 bits, any numbers", {.bits = 4}},
    {"3 bits", {.bits = 3}, .number = gradient}, {"2 bits, numbers near 1", {.bits = 2}, .number = near_one},
    {"4 bits, few whole numbers", {.bits = 4}, .number = few_whole},
    {"2 bits, blocks of 7", {.bits = 2, .block = 7}, .number = sparse},
    {"3 bits, blocks of 77, any numbers", {.bits = 3, .block = 77}},
    {"4 bits, blocks of 192", {.bits = 4, .block = 192}, .number = sparse},
    {"4 bits, segments", {.bits = 4}, .segments = 1, .number = gradient},
    {"2 bits, segments", {.bits = 2}, .segments = 1, .number = gradient});
