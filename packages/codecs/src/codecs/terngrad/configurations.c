#include "check/check.h"

const configurations terse_terngrad_configurations = THESE(
    {"one scale", .number = f16_float}, {"one scale, any numbers"},
    {"one scale, clipped", {.clip = 0.5f}, .number = gradient}, {"blocks of 7", {.block = 7}, .number = sparse},
    {"blocks of 37", {.block = 37}}, {"blocks of 512, clipped", {.block = 512, .clip = 2.5f}, .number = f16_float},
    {"segments", .segments = 1, .number = f16_float},
    {"segments, clipped", {.clip = 1.0f}, .segments = 1, .number = gradient});
