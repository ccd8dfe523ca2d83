#include "check/check.h"

const configurations terse_sign_configurations = THESE(
    {"zeros plus", {.zero = TERSE_ZERO_PLUS}},
    {"zeros minus, some elements held", {.zero = TERSE_ZERO_MINUS}, .held = 1});
