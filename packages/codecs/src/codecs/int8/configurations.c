#include "check/check.h"

const configurations terse_int8_configurations = THESE({"one scale"}, {"blocks of 7", {.block = 7}, .number = sparse},
                                                       {"blocks of 37", {.block = 37}, .number = bf16_float},
                                                       {"blocks of 512", {.block = 512}, .number = gradient},
                                                       {"segments", .segments = 1, .number = f16_float});
