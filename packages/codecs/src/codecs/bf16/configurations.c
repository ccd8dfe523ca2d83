#include "check/check.h"

const configurations terse_bf16_configurations = THESE({"numbers that fit", .number = bf16_float},
                                                       {"any numbers", .refuses = 1});
