#include "check/check.h"

const configurations terse_qsgd_configurations = THESE(
    {"4 bits, blocks of 512", {.bits = 4, .block = 512}, .number = gradient},
    {"5 bits", {.bits = 5}, .number = gradient}, {"5 bits, large numbers", {.bits = 5}, .number = with_a_norm},
    {"8 bits, any numbers", {.bits = 8}, .refuses = 1},
    {"8 bits, blocks of 192", {.bits = 8, .block = 192}, .number = gradient},
    {"3 bits, blocks of 77", {.bits = 3, .block = 77}, .number = gradient},
    {"2 bits, segments", {.bits = 2}, .segments = 1, .number = gradient},
    {"7 bits, segments, zeros", {.bits = 7}, .segments = 1, .number = sparse});
