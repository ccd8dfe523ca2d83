#include "check/check.h"

const configurations terse_f16_configurations = THESE({"numbers that fit", .number = f16_float},
                                                      {"any numbers", .refuses = 1});
